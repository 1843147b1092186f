/* SPDX-License-Identifier: Apache-2.0 */
/* A library that seems to be OpenVINO, and lacks its other functions. */
int ov_get_openvino_version(void *version);

int ov_get_openvino_version(void *version)
{
    (void)version;
    return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of BlazeFace: each box is relative to its anchor, and one face activates many anchors,
 * whose boxes are averaged. The constants are those of MediaPipe's face_detection_short_range:
 * strides 8, 16, 16, 16 give the grids; anchors are in the middle of their cell and have no
 * size. */
#include "face.h"

#include <math.h>

#define BOX_SCALE 128.0f   /* boxes are in pixels of the input */
#define SCORE_LIMIT 100.0f /* of scores before the sigmoid */
#define MIN_SCORE 0.5f
#define MIN_OVERLAP 0.3f /* above this, two boxes are the same face */
#define MAX_CANDIDATES (FINE_COUNT + COARSE_COUNT)

/* The anchors of one grid. */
typedef struct anchor_grid {
    int side;
    int anchors; /* of each cell */
    const float *scores;
    const float (*boxes)[BOX_VALUES];
} anchor_grid;

static float score_decode(float raw)
{
    const float limited = fminf(fmaxf(raw, -SCORE_LIMIT), SCORE_LIMIT);
    return 1.0f / (1.0f + expf(-limited));
}

/* Decodes the values of a box: its middle, width and height, then the points. */
static found_face box_decode(const float *box, point anchor)
{
    found_face out = {0};
    const float x = box[0] / BOX_SCALE + anchor.x;
    const float y = box[1] / BOX_SCALE + anchor.y;
    const float half_width = box[2] / BOX_SCALE / 2;
    const float half_height = box[3] / BOX_SCALE / 2;
    out.corners[0] = (point){x - half_width, y - half_height};
    out.corners[1] = (point){x + half_width, y + half_height};
    for (int i = 0; i < FACE_POINTS; i++) {
        out.points[i].x = box[4 + 2 * i] / BOX_SCALE + anchor.x;
        out.points[i].y = box[5 + 2 * i] / BOX_SCALE + anchor.y;
    }
    return out;
}

/* Appends the faces of a grid to the candidates; returns their number. */
static int decode_grid(const anchor_grid *grid, found_face *candidates)
{
    int count = 0;
    for (int i = 0; i < grid->side * grid->side * grid->anchors; i++) {
        const float score = score_decode(grid->scores[i]);
        if (!(score >= MIN_SCORE)) continue;
        const int cell = i / grid->anchors;
        const int column = cell % grid->side;
        const int row = cell / grid->side;
        const point anchor = {((float)column + 0.5f) / (float)grid->side,
                              ((float)row + 0.5f) / (float)grid->side};
        candidates[count] = box_decode(grid->boxes[i], anchor);
        candidates[count].score = score;
        count++;
    }
    return count;
}

static float box_area(const found_face *face)
{
    return fmaxf(face->corners[1].x - face->corners[0].x, 0) *
           fmaxf(face->corners[1].y - face->corners[0].y, 0);
}

/* Intersection over union of two boxes. */
static float box_overlap(const found_face *a, const found_face *b)
{
    found_face common = {0};
    common.corners[0].x = fmaxf(a->corners[0].x, b->corners[0].x);
    common.corners[0].y = fmaxf(a->corners[0].y, b->corners[0].y);
    common.corners[1].x = fminf(a->corners[1].x, b->corners[1].x);
    common.corners[1].y = fminf(a->corners[1].y, b->corners[1].y);
    const float shared = box_area(&common);
    const float whole = box_area(a) + box_area(b) - shared;
    return whole > 0 ? shared / whole : 0;
}

static void add_point(point *sum, point part, float weight)
{
    sum->x += part.x * weight;
    sum->y += part.y * weight;
}

static void add_face(found_face *sum, const found_face *part, float weight)
{
    for (int i = 0; i < 2; i++) add_point(&sum->corners[i], part->corners[i], weight);
    for (int i = 0; i < FACE_POINTS; i++) add_point(&sum->points[i], part->points[i], weight);
}

static int best_index_of(const found_face *candidates, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++) {
        if (candidates[i].score > candidates[best].score) best = i;
    }
    return best;
}

/* Removes the candidates that show the same face as the best one. Returns their average, weighted
 * by the scores, with the best score. */
static found_face take_face(found_face *candidates, int *count)
{
    const int best_index = best_index_of(candidates, *count);
    const found_face best = candidates[best_index];
    found_face sum = {0};
    float weights = 0;
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const found_face candidate = candidates[i];
        if (i == best_index || box_overlap(&candidate, &best) > MIN_OVERLAP) {
            add_face(&sum, &candidate, candidate.score);
            weights += candidate.score;
        } else {
            candidates[kept++] = candidate;
        }
    }
    *count = kept;
    found_face average = {.score = best.score};
    add_face(&average, &sum, 1 / weights);
    return average;
}

int faces_find(const detector_result *result, found_face *faces, int max)
{
    const anchor_grid fine = {FINE_SIDE, FINE_ANCHORS, result->fine_scores, result->fine_boxes};
    const anchor_grid coarse = {COARSE_SIDE, COARSE_ANCHORS, result->coarse_scores,
                                result->coarse_boxes};
    found_face candidates[MAX_CANDIDATES];
    int count = decode_grid(&fine, candidates);
    count += decode_grid(&coarse, candidates + count);
    int found = 0;
    while (found < max && count > 0) faces[found++] = take_face(candidates, &count);
    return found;
}

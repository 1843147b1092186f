/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that Python ends below frames of the extension.
 *
 * Until Python 3.13 a thread that attaches to an interpreter that ends is ended by pthread_exit,
 * wherever it runs Python code: in __index__ of an argument, in a method that a call calls. The
 * unwinding runs the destructors of the frames below, which give references and buffers back
 * without the interpreter. So the linker gives the frames of this extension another personality
 * (--wrap): it is asked before the first of their destructors, and the thread stays there. Later
 * versions of Python let such a thread hang. */
#include <unwind.h>

#include "exit_guard.h"

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class of,
                                                struct _Unwind_Exception *exception,
                                                struct _Unwind_Context *context);
_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class of,
                                                struct _Unwind_Exception *exception,
                                                struct _Unwind_Context *context);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class of,
                                                struct _Unwind_Exception *exception,
                                                struct _Unwind_Context *context)
{
    if ((actions & _UA_FORCE_UNWIND) != 0 && sp_py_guard_is_closed()) sp_py_park();
    return __real___gxx_personality_v0(version, actions, of, exception, context);
}
}

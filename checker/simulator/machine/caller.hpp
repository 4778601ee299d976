// The code that calls the machine.
#pragma once

// The address, in the caller, of the call of the function in which this stands.
#define PMLAB_CALLER __builtin_return_address(0)

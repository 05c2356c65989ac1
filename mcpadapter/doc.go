// Package mcpadapter is the agents' door: a few tools over the Model Context Protocol (Streamable HTTP,
// stateless; 2026-07-28 and the older versions that the SDK serves).
//
// It promises that every call is authenticated, that inputs are read exactly (duplicate keys refused, numbers never
// through a float) and checked against the tool's closed schema, that every structured result matches the schema that the
// tool published, that a business refusal is a result and never a protocol error, that a panic ends one call and not the
// process, and that no internal error's text leaves. No tool here approves, decides, resolves or freezes, and nothing that
// could is imported: asking for an approval is the one narrow port Approvals.
//
// It does not promise progress messages, server-initiated requests or sessions, and it decides nothing: rules live in the
// services behind the ports. A caller who hangs up cancels their waiting, never an execution.
//
// The SDK allocates about half a megabyte per call (its decoders buffer 32 KiB, several times), nearly all of it garbage at
// once. A process that serves this handler should collect less often (GOGC=400 halves the CPU per call) and have a GOMEMLIMIT;
// the command sets both. Serve it with WriteTimeout 0, because change_status may be held for fifty seconds, and without
// compression or buffering in front: answers are event streams.
//
// Start at New; door.go is what happens before the SDK sees a request, call.go is what happens around each tool.
package mcpadapter

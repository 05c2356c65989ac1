package main

import "encoding/json"

// callOf is an MCP message that calls a tool.
func callOf(tool string, args map[string]any) string {
	raw, _ := json.Marshal(map[string]any{ // of plain values
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args},
	})
	return string(raw)
}

// mcp calls a tool at the agents' door.
func (w *world) mcp(token, tool string, args map[string]any, headers ...string) reply {
	all := append(bearer(token), "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18")
	return w.send("POST", "/mcp", callOf(tool, args), append(all, headers...)...)
}

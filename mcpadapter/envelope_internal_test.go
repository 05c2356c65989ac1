package mcpadapter

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	const long = "12345678901234567890.50"
	for name, c := range map[string]struct{ in, tool, args, forward string }{
		"a call": {
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":` + long + `}}}`,
			"x", `{"n":` + long + `}`, `{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{},"name":"x"}}`,
		},
		"a call without arguments": {
			`{"method":"tools/call","params":{"name":"x"}}`, "x", ``, `{"method":"tools/call","params":{"name":"x"}}`,
		},
		"another method is left alone": {
			` {"method":"tools/list","params":{"name":"x","arguments":1}} `, "", ``, ` {"method":"tools/list","params":{"name":"x","arguments":1}} `,
		},
		"a batch is left alone": {`[{"method":"tools/call"}]`, "", ``, `[{"method":"tools/call"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := open([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if e.tool != c.tool || string(e.args) != c.args || string(e.forward) != c.forward {
				t.Errorf("got %q %s %s, want %q %s %s", e.tool, e.args, e.forward, c.tool, c.args, c.forward)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"the same key twice":        {`{"method":"a","method":"b"}`, errDuplicate},
		"spelled with an escape":    {`{"method":"a","m\u0065thod":"b"}`, errDuplicate},
		"the same parameter twice":  {`{"method":"tools/call","params":{"name":"a","name":"b"}}`, errDuplicate},
		"the same arguments twice":  {`{"method":"tools/call","params":{"arguments":{},"arguments":{}}}`, errDuplicate},
		"brackets without an end":   {strings.Repeat("[", 100_000), errTooDeep},
		"something after the value": {`{"method":"a"} {}`, nil},
		"a string":                  {`"tools/call"`, nil},
		"a method that is a number": {`{"method":1}`, nil},
		"parameters in a list":      {`{"method":"tools/call","params":[]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open([]byte(c.in))
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// What the SDK is handed names the tool that the door checked, and none of the arguments.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":[1,"\\\""]},"_meta":{}}}`))
	f.Add([]byte(`[{}]`))
	f.Add([]byte(`{"params":null,"method":"tools/call"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := open(body)
		if err != nil {
			return
		}
		if !json.Valid(e.forward) {
			t.Fatalf("%q is no JSON, made of %q", e.forward, body)
		}
		if e.method != methodCall || e.args == nil {
			return
		}
		outer, err := members(e.forward)
		if err != nil {
			t.Fatal(err)
		}
		params, err := members(outer["params"])
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if err := json.Unmarshal(or(params["name"], `""`), &name); err != nil || name != e.tool || string(params["arguments"]) != `{}` {
			t.Errorf("the SDK sees %s with %s, the door %q", params["name"], params["arguments"], e.tool)
		}
	})
}

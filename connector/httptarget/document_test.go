package httptarget_test

import (
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector/httptarget"
)

func TestOnlyAWholeObjectIsADocument(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		want bool
	}{
		"an object":        {`{"id":"1","n":1}`, true},
		"an empty object":  {`{}`, true},
		"nothing":          {``, false},
		"half an object":   {`{"id":"1"`, false},
		"two objects":      {`{"id":"1"}{"id":"1"}`, false},
		"a doubled member": {`{"id":"1","id":"2"}`, false},
		"a list":           {`[{"id":"1"}]`, false},
		"a string":         {`"id"`, false},
		"null":             {`null`, false},
		"a page of HTML":   {`<html>Bad gateway</html>`, false},
		"over a mebibyte":  {`{"id":"` + strings.Repeat("x", 1<<20) + `"}`, false},
	} {
		if d, err := httptarget.ParseDocument([]byte(tt.body)); (err == nil) != tt.want {
			t.Errorf("%s: got %v, %v, want taken %t", name, d, err, tt.want)
		}
	}
}

func TestMembersAreReadByTheirExactNames(t *testing.T) {
	t.Parallel()
	d, err := httptarget.ParseDocument([]byte(`{
		"id": "1", "empty": "", "number": 1, "ID2": "2", "null": null,
		"inner": {"a": "b"}, "items": [{"id": "x"}, {"id": "y"}], "mixed": [{"id": "x"}, "y"], "none": []}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"id": true, "empty": false, "number": false, "id2": false, "null": false, "absent": false, "inner": false,
	} {
		var got string
		if err := d.Texts(map[string]*string{name: &got}); (err == nil) != want {
			t.Errorf("the text %s: got %q, %v, want taken %t", name, got, err, want)
		}
	}
	inner, err := d.Object("inner")
	if err != nil || inner["a"] != "b" {
		t.Errorf("the object: got %v, %v", inner, err)
	}
	for _, name := range []string{"id", "items", "null", "absent"} {
		if got, err := d.Object(name); err == nil {
			t.Errorf("the object %s: got %v", name, got)
		}
	}
	for name, want := range map[string]int{"items": 2, "none": 0, "mixed": -1, "inner": -1, "null": -1, "absent": -1} {
		items, err := d.List(name)
		if got := len(items); (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("the list %s: got %v, %v, want %d (-1 is none)", name, items, err, want)
		}
	}
}

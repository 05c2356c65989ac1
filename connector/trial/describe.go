package trial

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/cutonce/cutonce/connector"
)

// describe is the one check that asks nobody: what the connector says of itself is complete.
func describe(s Subject) Result {
	r := Result{ID: "describe", Did: "nothing is asked; what the connector says of itself is read", Want: "complete", Status: Pass, Got: "complete"}
	if err := complete(s); err != nil {
		r.Status, r.Got, r.Reason = Fail, "incomplete", err.Error()
	}
	return r
}

func complete(s Subject) error {
	d := s.Connector.Describe()
	if _, err := connector.NewRegistry(s.Connector); err != nil {
		return err
	}
	texts := map[string]map[string]any{}
	for _, lang := range []string{"en", "ja"} {
		if d.Texts == nil {
			return fmt.Errorf("there are no texts: Texts holds en.json and ja.json")
		}
		raw, err := fs.ReadFile(d.Texts, lang+".json")
		if err != nil {
			return fmt.Errorf("the texts: %w", err)
		}
		var all map[string]any
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("%s.json: %w", lang, err)
		}
		texts[lang] = all
	}
	for _, a := range d.Actions {
		for _, key := range []string{"action." + a.Name + ".title", "action." + a.Name + ".preview", "action." + a.Name + ".apply"} {
			for lang, all := range texts {
				if all[key] == nil {
					return fmt.Errorf("%s.json has no %s", lang, key)
				}
			}
		}
	}
	return able(d.Able)
}

// able refuses capabilities that say nothing.
func able(a connector.Capabilities) error {
	switch {
	case a.Replay && a.ReplayFor <= 0:
		return fmt.Errorf("a target that remembers keys remembers them for some time: ReplayFor")
	case a.Lookup && a.SettleFor <= 0:
		return fmt.Errorf("a look-up that proves absence does so after some time: SettleFor")
	}
	return nil
}

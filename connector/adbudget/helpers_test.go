package adbudget_test

import "encoding/json"

func number(s string) json.Number { return json.Number(s) }

// Package policies holds the example policies, compiled into the binary so that a first run needs no configuration.
//
// It promises a policy that a careful team could start from. It is not a default for production: write your own file, and
// name your own groups.
package policies

import "embed"

// FS holds the example files, one for each action; policy.Load(policies.FS) compiles them as one policy.
//
//go:embed *.yaml
var FS embed.FS

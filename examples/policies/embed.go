// Package policies holds the example policy, compiled into the binary so that a first run needs no configuration.
//
// It promises a policy that a careful team could start from. It is not a default for production: write your own file, and
// name your own groups.
package policies

import "embed"

// FS holds the example files; policy.Load(policies.FS) compiles them. A file belongs here together with the action that its
// rules are about: a policy about an action that the service does not have refuses to start.
//
//go:embed *.yaml
var FS embed.FS

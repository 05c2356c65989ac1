package doctor

import "context"

// notifications says whether somebody is told of what happens. No message is sent.
func (d *Deployment) notifications(_ context.Context, see *Seen) {
	switch {
	case d.NotifyErr != nil:
		see.fail("cutonce notify check says all of it; docs/notifications.md explains the file", "%v", d.NotifyErr)
	case d.Settings.NotifyFile == "":
		see.ok("nobody is told (CUTONCE_NOTIFY_FILE names no file)")
	default:
		see.ok("%d receivers; cutonce notify test tries one", d.Receivers)
	}
}

package store

// Grants are what the two roles may do, by role and table.
func Grants() map[string]string {
	all := map[string]string{}
	for table, may := range grants {
		if may.app != "" {
			all["cutonce_app "+table] = may.app
		}
		all["cutonce_worker "+table] = may.worker
	}
	return all
}

// Unwalled are the tables that hold nobody's rows.
var Unwalled = unwalled

package api

// Routes are the operations with the query parameters that each knows.
func Routes() map[string][]string {
	all := map[string][]string{}
	for _, r := range routes() {
		all[r.method+" "+r.path] = append([]string{}, r.query...)
	}
	return all
}

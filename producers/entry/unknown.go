package entry

// UnknownSite returns what Options.Unknown says of an owner whose location is not
// known, for those who tell clients: the site that serves it, or false if that
// depends on where the request enters, or no site may.
func UnknownSite(sites []string, unknown string, residency func(owner string) []bool) func(owner string) (string, bool) {
	o := Options{Unknown: unknown, Residency: residency}
	for _, s := range sites {
		o.Sites = append(o.Sites, Site{Name: s})
	}
	r := newRouter(&o)
	return func(owner string) (string, bool) {
		if unknown == UnknownLocal {
			return "", false
		}
		at := r.choose(owner)
		if at == noSite {
			return "", false
		}
		return sites[at], true
	}
}

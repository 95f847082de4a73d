package window

// CommitOf returns the commit in a message of WINDOWS that ends a flush, without
// looking at panes that may stand before it in the same message ([Join]). The
// error wraps ErrUndecodable.
func CommitOf(header map[string][]string, body []byte) (*Commit, error) {
	lengths := ""
	if v := header[HeaderPanes]; len(v) > 0 {
		lengths = v[0]
	}
	_, commit, err := Part(lengths, body)
	if err != nil {
		return nil, err
	}
	return DecodeCommit(commit)
}

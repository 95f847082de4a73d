package command

import "strings"

// mostSaid is how much of a program's last words is kept.
const mostSaid = 400

// tail keeps the end of what is written to it. It is for one goroutine: exec writes both
// outputs by one, as they are the same writer.
type tail struct{ kept []byte }

// Write never fails: a program is not to wait, or to die, for its words.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.kept = append(t.kept, p[max(0, n-mostSaid):]...)
	t.kept = t.kept[max(0, len(t.kept)-mostSaid):]
	return n, nil
}

// String is the end, on one line.
func (t *tail) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "")), " ")
}

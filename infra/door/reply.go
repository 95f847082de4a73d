package door

import (
	"net/http"
	"strconv"
)

// The words of Refusal.
const (
	WordHost  = "host"
	WordToken = "token"
)

// Refusal is what is said to whom Enter refused with a status, a word for programs
// and a text, and sets the header that says how to come in.
func Refusal(h http.Header, status int) (word, text string) {
	if status == http.StatusForbidden {
		return WordHost, "this server answers to loopback names only"
	}
	h.Set("WWW-Authenticate", `Bearer realm="penstock"`)
	return WordToken, "a bearer token is needed"
}

// Reply answers with JSON; with its headers alone, if they were asked for.
func Reply(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // An asker that went away is no failure of ours.
	}
}

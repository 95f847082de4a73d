package upstream

import "net/http"

// RoundTrip implements http.RoundTripper for those who need no Attempt, such as
// httputil.ReverseProxy: it is Do, and closes the request's body.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, _, err := p.Do(req, nil)
	if err != nil && req.Body != nil {
		_ = req.Body.Close()
	}
	return resp, err
}

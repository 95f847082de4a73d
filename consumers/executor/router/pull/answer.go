package pull

import (
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"penstock/infra/shares"
	"penstock/schemas/control"
)

// answered is an answer as it is sent.
type answered struct {
	body []byte
	// tag is the ETag, with its quotes.
	tag string
	// servers is a digest of where servers are.
	servers string
}

// answer makes the answer for a link of a table, which has is false without.
func (s *Server) answer(l shares.Link, t shares.Table, has bool) (answered, error) {
	a := control.SplitAnswer{Component: l.To, From: l.From, FromSite: l.FromSite}
	at := -1
	if has {
		at = slices.IndexFunc(t.Rows, func(row shares.Row) bool { return row.FromSite == l.FromSite && row.To == l.To })
	}
	if at < 0 {
		a.Ratios = []control.SplitSite{{Site: l.FromSite, Share: 1}}
	} else {
		a.Known, a.Epoch, a.WritesAt = true, t.Epoch, t.Rows[at].WritesAt
		a.Ratios = ratios(t.Rows[at])
	}
	configured := a.WritesAt == "" && s.opts.WritesAt[l.To] != ""
	if configured {
		a.WritesAt = s.opts.WritesAt[l.To]
	}
	a.Ratios = withWrites(a.Ratios, a.WritesAt)
	digest := xxhash.New()
	for i := range a.Ratios {
		a.Ratios[i].Servers = s.opts.Components[l.To][a.Ratios[i].Site]
		for _, server := range a.Ratios[i].Servers {
			_, _ = digest.WriteString(server) // It never fails.
			_, _ = digest.WriteString("\n")
		}
		_, _ = digest.WriteString("\n")
	}
	body, err := control.Encode(a)
	if err != nil {
		return answered{}, err
	}
	tag := strconv.FormatUint(a.Epoch, 10)
	if a.Known && a.Epoch == 0 || configured { // what is configured has no epoch, but it can be another after a restart
		tag += "-" + hex(xxhash.Sum64(body))
	}
	return answered{body: append(body, '\n'), tag: `"` + tag + `"`, servers: hex(digest.Sum64())}, nil
}

// ratios are those of a row, with a sum of 1.
func ratios(row shares.Row) []control.SplitSite {
	sum, out := 0.0, make([]control.SplitSite, len(row.Ratios), len(row.Ratios)+1)
	for i, ratio := range row.Ratios {
		out[i] = control.SplitSite{Site: ratio.Site, Share: ratio.Share}
		sum += ratio.Share
	}
	if d := sum - 1; d < -1e-9 || d > 1e-9 { // as they are given in a default, say
		for i := range out {
			out[i].Share /= sum
		}
	}
	return out
}

// withWrites has the site for writes among the sites.
func withWrites(out []control.SplitSite, at string) []control.SplitSite {
	if at != "" && !slices.ContainsFunc(out, func(r control.SplitSite) bool { return r.Site == at }) {
		out = append(out, control.SplitSite{Site: at})
	}
	return out
}

func hex(v uint64) string { return strconv.FormatUint(v, 16) }

package join

import (
	"strings"
	"testing"

	"penstock/producers/otlp/span"
)

// Each case is a trace, the calls that come of it, and what became of its spans.
var cases = []struct {
	name, spans, calls, account string
	entries                     Entries
}{
	{
		name: "both halves of a call",
		spans: `1.1 server shop/s1@eu 1000+900
		        1.2<1 client shop/s1@eu 1100+500
		        1.3<2 server cart/c1@us 1200+300`,
		calls: `1 shop/s1@eu→cart/c1@us at 1600 client=500 server=300 own=300 network=200
		        1 ·@eu→shop/s1@eu at 1900 client=? server=900 own=400 network=? entry one-sided`,
		account: "3 spans = 2 call + 1 half",
	},
	{
		name: "one id for both halves",
		spans: `1.1 server shop 1000+900
		        1.2<1 client shop 1100+500
		        1.2<1 server cart 1200+300 shared
		        1.4<2 internal cart 1250+10
		        1.5<2 client cart callee=db 1260+20`,
		calls: `1 cart→db at 1280 client=20 server=? own=? network=? one-sided
		        1 shop→cart at 1600 client=500 server=300 own=280 network=200
		        1 ·→shop at 1900 client=? server=900 own=400 network=? entry one-sided`,
		account: "5 spans = 3 call + 1 half + 1 inside",
	},
	{
		name: "one id although nothing says shared",
		spans: `1.2 client shop 1100+500
		        1.2 server cart 1200+300`,
		calls:   `1 shop→cart at 1600 client=500 server=300 own=300 network=200`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "a server in fragments is one",
		spans: `1.2 server cart start=1200
		        1.2 cart 1200+300
		        1.2 server cart start=1200`,
		calls:   `1 ·→cart at 1500 client=? server=300 own=300 network=? entry one-sided`,
		account: "3 spans = 1 call + 2 duplicate",
	},
	{
		name: "kinds are unknown: an inner span with one child elsewhere is the client's half",
		spans: `1.1 shop/s1 1000+900
		        1.2<1 shop/s1 1100+500
		        1.3<2 cart/c1 1200+300
		        1.4<3 cart/c1 1210+20`,
		calls:   `1 shop/s1→cart/c1 at 1600 client=500 server=300 own=300 network=200`,
		account: "4 spans = 1 call + 1 half + 1 inside + 1 root",
	},
	{
		name: "kinds are unknown: a root with one child elsewhere waited for more than it",
		spans: `1.1 shop/s1 1000+900
		        1.3<1 cart/c1 1200+300`,
		calls:   `1 shop/s1→cart/c1 at 1500 client=? server=300 own=300 network=? one-sided`,
		account: "2 spans = 1 call + 1 root",
	},
	{
		name:    "kinds are unknown: roots are entries if that is wanted",
		entries: EntryAll,
		spans: `1.1 shop/s1 1000+900
		        1.2<1 shop/s1 1100+500
		        1.3<2 cart/c1 1200+300`,
		calls: `1 shop/s1→cart/c1 at 1600 client=500 server=300 own=300 network=200
		        1 ·→shop/s1 at 1900 client=? server=900 own=400 network=? entry one-sided`,
		account: "3 spans = 2 call + 1 half",
	},
	{
		name:    "no entries wanted",
		entries: EntryNone,
		spans:   `1.1 server shop 1000+900`,
		account: "1 spans = 1 root",
	},
	{
		name: "within one process is no call, whatever the kinds",
		spans: `1.1 server shop/s1 1000+900
		        1.2<1 client shop/s1 1100+500
		        1.3<2 server shop/s1 1200+300
		        1.4<3 internal shop/s1 1210+20`,
		calls:   `1 ·→shop/s1 at 1900 client=? server=900 own=900 network=? entry one-sided`,
		account: "4 spans = 1 call + 3 inside",
	},
	{
		name: "a component calls itself in another process",
		spans: `1.2 client shop/s1 1100+500
		        1.3<2 server shop/s2 1200+300`,
		calls:   `1 shop/s1→shop/s2 at 1600 client=500 server=300 own=300 network=200`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "a component calls itself, processes unknown: kinds say so",
		spans: `1.2 client shop 1100+500
		        1.3<2 server shop 1200+300
		        1.4<3 server shop 1200+100`,
		calls:   `1 shop→shop at 1600 client=500 server=300 own=300 network=200`,
		account: "3 spans = 1 call + 1 half + 1 inside",
	},
	{
		name: "a client around a client is one call",
		spans: `1.1 client shop/s1 1000+600 callee=cart
		        1.2<1 client shop/s1 1100+500
		        1.3<2 server cart/c1 1200+300`,
		calls:   `1 shop/s1→cart/c1 at 1600 client=500 server=300 own=300 network=200`,
		account: "3 spans = 1 call + 1 half + 1 inside",
	},
	{
		name: "a client tries twice: how long each was on the way is unknown",
		spans: `1.2 client shop 1000+900
		        1.3<2 server cart/c1 1100+300
		        1.4<2 server cart/c2 1500+200`,
		calls: `1 shop→cart/c1 at 1900 client=900 server=300 own=300 network=? fanout
		        1 shop→cart/c2 at 1900 client=900 server=200 own=200 network=? fanout`,
		account: "3 spans = 2 call + 1 half",
	},
	{
		name: "clocks differ: network comes from durations, nothing is corrected",
		spans: `1.2 client shop 100000+500
		        1.3<2 server cart 200+300`,
		calls:   `1 shop→cart at 100500 client=500 server=300 own=300 network=200 skewed`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "the server took longer than its client waited: flagged and kept",
		spans: `1.2 client shop 1000+500
		        1.3<2 server cart 1100+700`,
		calls:   `1 shop→cart at 1500 client=500 server=700 own=700 network=-200 negative`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "what outlives its parent was not waited for",
		spans: `1.1 server shop 1000+900
		        1.2<1 client shop 1100+5000 callee=mail
		        1.3<1 internal shop 1200+2000
		        1.4<3 client shop 1300+100 callee=log
		        1.5<1 client shop 1400+200 callee=db`,
		calls: `1 shop→db at 1600 client=200 server=? own=? network=? one-sided
		        1 shop→log at 1400 client=100 server=? own=? network=? one-sided
		        1 shop→mail at 6100 client=5000 server=? own=? network=? one-sided
		        1 ·→shop at 1900 client=? server=900 own=700 network=? entry one-sided`,
		account: "5 spans = 4 call + 1 inside",
	},
	{
		name: "calls at the same time are waited for once",
		spans: `1.1 server shop 1000+900
		        1.2<1 client shop 1100+300 callee=a
		        1.3<1 client shop 1200+300 callee=b
		        1.4<1 client shop 1250+10 callee=c`,
		calls: `1 shop→a at 1400 client=300 server=? own=? network=? one-sided
		        1 shop→b at 1500 client=300 server=? own=? network=? one-sided
		        1 shop→c at 1260 client=10 server=? own=? network=? one-sided
		        1 ·→shop at 1900 client=? server=900 own=500 network=? entry one-sided`,
		account: "4 spans = 4 call",
	},
	{
		name: "messages are no calls and are not waited for",
		spans: `1.1 server shop 1000+900
		        1.2<1 producer shop 1100+100 callee=kafka
		        1.3<2 consumer mail 5000+100
		        1.4<3 client mail 5010+50 callee=smtp`,
		calls: `1 mail→smtp at 5060 client=50 server=? own=? network=? one-sided
		        1 ·→shop at 1900 client=? server=900 own=900 network=? entry one-sided`,
		account: "4 spans = 2 call + 2 message",
	},
	{
		name: "what follows is not waited for",
		spans: `1.1 server shop 1000+900
		        1.3<1 server cart 1100+100 follows`,
		calls: `1 shop→cart at 1200 client=? server=100 own=100 network=? one-sided follows
		        1 ·→shop at 1900 client=? server=900 own=900 network=? entry one-sided`,
		account: "2 spans = 2 call",
	},
	{
		name: "no duration: the call counts, its delay is unknown",
		spans: `1.2 client shop start=1000
		        1.3<2 server cart start=1100`,
		calls:   `1 shop→cart at 1000 client=? server=? own=? network=? no-duration`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "one half has a duration",
		spans: `1.2 client shop start=1000
		        1.3<2 server cart 1100+50`,
		calls:   `1 shop→cart at 1150 client=? server=50 own=50 network=?`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "one half has no times: the other's hold",
		spans: `1.2 client shop 1000+90
		        1.3<2 server cart dur=50`,
		calls:   `1 shop→cart at 1090 client=90 server=50 own=50 network=40`,
		account: "2 spans = 1 call + 1 half",
	},
	{
		name: "no times at all",
		spans: `1.2 client shop
		        1.3<2 server cart`,
		account: "2 spans = 2 timeless",
	},
	{
		name: "a server whose client is not here: an orphan, unless it says who called",
		spans: `1.3<2 server cart 1100+50
		        1.5<4 server cart 1100+50 caller=shop`,
		calls:   `1 shop→cart at 1150 client=? server=50 own=50 network=? one-sided`,
		account: "2 spans = 1 call + 1 orphan",
	},
	{
		name:    "a shared half whose client never came hangs below the client's parent",
		spans:   "1.1 server shop 1000+900\n1.2<1 server cart 1200+300 shared",
		account: "2 spans = 2 call",
		calls: `1 shop→cart at 1500 client=? server=300 own=300 network=? one-sided
		        1 ·→shop at 1900 client=? server=900 own=600 network=? entry one-sided`,
	},
	{
		name: "a server's span is missing between: what it did next names the callee",
		spans: `1.2 client shop/s1 1000+500
		        1.4<2 client cart/c1 1100+50 callee=db`,
		calls: `1 cart/c1→db at 1150 client=50 server=? own=? network=? one-sided
		        1 shop/s1→cart/c1 at 1500 client=500 server=? own=? network=? one-sided`,
		account: "2 spans = 2 call",
	},
	{
		name: "nameless sides",
		spans: `1.1 client shop 1000+500
		        2.1 server 1000+500
		        3.1 client 1000+500
		        3.2<1 server /c1 1100+50`,
		account: "4 spans = 4 unnamed",
	},
	{
		name: "a span that is its own parent, and a ring",
		spans: `1.1<1 internal shop 1000+500
		        2.1<2 server a/1 1000+500
		        2.2<1 server b/1 1000+500`,
		calls: `2 a/1→b/1 at 1500 client=? server=500 own=0 network=? one-sided
		        2 b/1→a/1 at 1500 client=? server=500 own=0 network=? one-sided`,
		account: "3 spans = 2 call + 1 root",
	},
	{
		name: "another process at another site under the same name",
		spans: `1.1 internal shop@eu 1000+900
		        1.2<1 server shop@us 1100+500`,
		calls:   `1 shop@eu→shop@us at 1600 client=? server=500 own=500 network=? one-sided`,
		account: "2 spans = 1 call + 1 root",
	},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var spans []span.Span
			for line := range strings.Lines(c.spans) {
				spans = append(spans, sp(t, line))
			}
			calls, st := run(Options{Entries: c.entries}, spans)
			var want []string
			for line := range strings.Lines(c.calls) {
				if line = strings.TrimSpace(line); line != "" {
					want = append(want, line)
				}
			}
			if got, w := strings.Join(calls, "\n"), strings.Join(want, "\n"); got != w {
				t.Errorf("calls:\n%s\nexpected:\n%s", got, w)
			}
			if got := st.Account.String(); got != c.account {
				t.Errorf("%s, expected %s", got, c.account)
			}
		})
	}
}

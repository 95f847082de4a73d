package main

import (
	"fmt"
	"os"
	"time"

	"penstock/pipeline/topology"
)

type followCmd struct {
	aloneFlags
	Paths      []string      `arg:"" help:"Logs to follow, as globs in quotes; - is standard input."`
	Site       string        `help:"The site that served the requests, where the log does not say."`
	Component  string        `help:"The service that served them, where the log does not say."`
	Format     string        `help:"A format (see docs/logs.md), a file of one, or nginx:STRING, apache:STRING and so on; by default told from each file's first lines."`
	GeoIP      string        `name:"geoip" help:"mmdb file, or a folder with country ranges and centroids; without one places are unknown." type:"path"`
	OwnerDepth int           `help:"How many segments of the path name the owner." default:"1"`
	Zone       string        `help:"Time zone of logs that name none, such as Europe/Zurich." default:"UTC"`
	Disorder   time.Duration `help:"How much later than its time a line may come: the log's resolution and the server's buffers." default:"5s"`
	FromEnd    bool          `help:"At the very first start, begin at the end of the files that are there."`
	Rotated    []string      `help:"More folders in which rotated files are looked for." type:"path" placeholder:"DIR"`
}

// Run follows until it is told to stop.
func (c *followCmd) Run(con *console) error {
	a, err := c.alone(con, "follow", c.Site, fmt.Sprintf("following %d paths", len(c.Paths)))
	if err != nil {
		return err
	}
	f := topology.Follow{
		Alone: *a, Paths: c.Paths, Stdin: os.Stdin, Format: c.Format, Site: c.Site, Component: c.Component, GeoIP: c.GeoIP,
		OwnerDepth: c.OwnerDepth, Zone: c.Zone, Disorder: c.Disorder, FromEnd: c.FromEnd, Rotated: c.Rotated,
		Chosen: func(path, choice string) { fmt.Fprintf(con.out, "%s: %s\n", path, choice) },
	}
	return f.Run(con.ctx)
}

// Help shows how to follow logs.
func (followCmd) Help() string {
	return `Examples:
  penstock follow '/var/log/nginx/access*.log' --site us-east -c penstock.yaml --nats nats://127.0.0.1:4222
  kubectl logs -f web | penstock follow - --format envoy -c penstock.yaml --nats nats://127.0.0.1:4222

Every line counts once, however the logs are rotated and whenever this is killed:
what was read is remembered under --state. A name and its state folder belong
together: the same name with another folder reads, and counts, everything again.`
}

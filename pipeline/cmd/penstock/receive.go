package main

import "penstock/pipeline/topology"

type receiveCmd struct {
	aloneFlags
	GRPC string `name:"grpc" help:"Address of OTLP over gRPC instead of the configuration's, or off." placeholder:"HOST:PORT"`
	HTTP string `name:"http" help:"Address of OTLP over HTTP instead of the configuration's, or off." placeholder:"HOST:PORT"`
	Self string `help:"Which of spans.peers this one is; by default its address of gRPC." placeholder:"HOST:PORT"`
}

// Run receives until it is told to stop.
func (c *receiveCmd) Run(con *console) error {
	a, err := c.alone(con, "receive", c.Self, "receiver of spans")
	if err != nil {
		return err
	}
	r := topology.Receive{Alone: *a, GRPC: c.GRPC, HTTP: c.HTTP, Self: c.Self}
	return r.Run(con.ctx)
}

// Help shows the receiver.
func (receiveCmd) Help() string {
	return `Examples:
  penstock receive -c penstock.yaml --nats nats://127.0.0.1:4222
  penstock receive -c penstock.yaml --nats nats://127.0.0.1:4222 --grpc 10.0.0.1:4317 --http off --self 10.0.0.1:4317
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 my-service

Calls count in windows once both halves had the time to come (spans.window).
See docs/spans.md.`
}

package main

// Each verb's Help is what `penstock VERB --help` prints below its flags.

// Help shows replays.
func (replayCmd) Help() string {
	return `Examples:
  penstock replay day.parquet --config infra/examples/paper.yaml
  penstock replay access.log.1.gz access.log --geoip GeoLite2-City.mmdb -c infra/examples/world.yaml
  penstock replay day.parquet -c infra/examples/paper.yaml --speed 60x --until 2016-09-14T12:00:00Z

A replay never touches the configured stores, unless --apply says so. It is safe
to kill: the same command goes on where it was.`
}

// Help shows how to serve.
func (serveCmd) Help() string {
	return `Examples:
  penstock serve --config penstock.yaml --listen 127.0.0.1:4222
  penstock init --nats nats://127.0.0.1:4222
  penstock serve --config penstock.yaml --nats nats://127.0.0.1:4222 --roles aggregator,decider

It starts in the mode advise: nothing is moved until penstock mode placement act,
no call is split until penstock mode split act, and coders keep the codes of the
configuration until penstock mode coding act.`
}

// Help shows how to make streams.
func (initCmd) Help() string {
	return `Examples:
  penstock init --nats nats://127.0.0.1:4222 --partitions 16
  penstock init --nats nats://127.0.0.1:4222 --check`
}

// Help shows imports.
func (importCmd) Help() string {
	return `Examples:
  penstock import recording access.log.*.gz --geoip GeoLite2-City.mmdb -o may.parquet
  penstock import checkins events.tsv.gz --friends users.tsv.gz --reads 10 --seed 1 -o checkins.parquet
  penstock import workload infra/examples/paper-day.yaml -o day.parquet`
}

// Help shows explanations.
func (explainCmd) Help() string {
	return `Examples:
  penstock explain blog
  penstock explain placement ann@example.org --nats nats://127.0.0.1:4222
  penstock explain split web@us-east --nats nats://127.0.0.1:4222
  penstock explain split entry --state penstock-out/state
  penstock explain coding objects --nats nats://127.0.0.1:4222
  penstock --json explain blog --state penstock-out/state`
}

// Help shows rollbacks.
func (rollbackCmd) Help() string {
	return `Examples:
  penstock rollback placement --to 2016-09-14T15:00:00Z --nats nats://127.0.0.1:4222
  penstock thaw placement --nats nats://127.0.0.1:4222
  penstock rollback split --to 2016-09-14T15:00:00Z --nats nats://127.0.0.1:4222
  penstock rollback coding --to 2016-09-14T15:00:00Z --nats nats://127.0.0.1:4222`
}

// Help shows locations.
func (locationsCmd) Help() string {
	return `Examples:
  penstock locations import where.csv --config penstock.yaml --nats nats://127.0.0.1:4222
  penstock locations import --from-stores --config penstock.yaml --state penstock-state
  penstock locations export -o where.parquet --nats nats://127.0.0.1:4222
  penstock locations pin ann@example.org --nats nats://127.0.0.1:4222
  penstock locations verify --config infra/examples/paper.yaml --replay`
}

// Help shows evacuations.
func (evacuateCmd) Help() string {
	return `Examples:
  penstock evacuate us-east --wait --config penstock.yaml --nats nats://127.0.0.1:4222
  penstock --json evacuate us-east --nats nats://127.0.0.1:4222
  penstock evacuate us-east --off --nats nats://127.0.0.1:4222`
}

// Help shows status.
func (statusCmd) Help() string {
	return `Examples:
  penstock status
  penstock --json status --nats nats://127.0.0.1:4222`
}

// Help shows shadow reports.
func (shadowCmd) Help() string {
	return `Examples:
  penstock shadow --config penstock.yaml --nats nats://127.0.0.1:4222
  penstock shadow --config penstock.yaml --policy optimal --from 2026-03-01T00:00:00Z --out shadow
  penstock --json shadow --config infra/examples/paper.yaml --state penstock-out/state`
}

// Help shows doctors.
func (doctorCmd) Help() string {
	return `Examples:
  penstock doctor --config penstock.yaml --nats nats://127.0.0.1:4222
  penstock doctor --config penstock.yaml --serve --no-bus
  penstock --json doctor --state penstock-out/state

It fails (exit code 1) if something is broken; what deserves a look is no failure.`
}

// Help shows purges.
func (purgeCmd) Help() string {
	return `Examples:
  penstock purge --nats nats://127.0.0.1:4222
  penstock purge --config penstock.yaml --state penstock-state`
}

// Help shows modes.
func (modeCmd) Help() string {
	return `Examples:
  penstock mode placement act --nats nats://127.0.0.1:4222
  penstock mode placement advise --nats nats://127.0.0.1:4222
  penstock mode split act --nats nats://127.0.0.1:4222
  penstock mode coding act --nats nats://127.0.0.1:4222`
}

module github.com/onbeat/onbeat/schedule/differential

go 1.26.8

replace github.com/onbeat/onbeat => ../../

require (
	github.com/netresearch/go-cron v0.9.1
	github.com/onbeat/onbeat v0.0.0
	github.com/robfig/cron/v3 v3.0.1
)

package main

// examples has the examples in the help of each command, by the command's path.
var examples = map[string]string{
	"": `
onbeat demo
onbeat dev --open
onbeat serve -c onbeat.yaml
onbeat help schedules apply
onbeat --version`,
	"demo": `
onbeat demo
onbeat demo --json`,
	"dev": `
onbeat dev --open
onbeat dev -c onbeat.yaml --port 6380`,
	"serve": `
onbeat serve -c onbeat.yaml
onbeat serve -c onbeat.yaml --release v42
onbeat serve -n shop --redis redis://127.0.0.1:6379/0`,
	"import": `
onbeat import crontab /var/spool/cron/crontabs/shop
onbeat import crontab --system /etc/crontab --timezone Europe/Berlin`,
	"import systemd-timers": `
onbeat import systemd-timers /etc/systemd/system`,
	"import k8s-cronjob": `
kubectl get cronjobs -A -o yaml | onbeat import k8s-cronjob -`,
	"import asynq": `
onbeat import asynq --redis redis://127.0.0.1:6379/0
onbeat import asynq -c onbeat.yaml --apply --move
onbeat import asynq -c onbeat.yaml --from file:asynq.url --apply --move`,
	"import celery-beat": `
onbeat import celery-beat shop/celery.py
onbeat import celery-beat beat.json`,
	"import crontab": `
crontab -l | onbeat import crontab -
onbeat import crontab --system /etc/crontab --timezone Europe/Berlin
onbeat import crontab shop.cron -n shop --apply`,
	"enqueue": `
onbeat enqueue echo --payload '{"hello": "world"}' --in 10m
onbeat enqueue http --payload @request.json --id invoice-42
jq -c '.jobs[]' jobs.json | onbeat enqueue --file - --skip-bad`,
	"schedules": `
onbeat schedules list
onbeat schedules show nightly-report
onbeat schedules apply schedules.yaml`,
	"schedules list": `
onbeat schedules list
onbeat schedules list --deleted
onbeat schedules list --json | jq -r '.items[].name'`,
	"schedules show": `
onbeat schedules show nightly-report`,
	"schedules runs": `
onbeat schedules runs nightly-report
onbeat schedules runs nightly-report --limit 100 --json | jq -r '.items[] | select(.outcome != "done") | .error'`,
	"schedules revisions": `
onbeat schedules revisions nightly-report
onbeat schedules revisions nightly-report --json | jq '.items[0].definition'`,
	"schedules revert": `
onbeat schedules revert nightly-report 1893456000000`,
	"schedules restore": `
onbeat schedules restore nightly-report`,
	"notify": `
onbeat notify test -c onbeat.yaml`,
	"notify test": `
onbeat notify test -c onbeat.yaml
onbeat notify test -c onbeat.yaml oncall`,
	"check": `
onbeat check onbeat.yaml
onbeat check --allow-exec onbeat.yaml
onbeat check --against-live onbeat.yaml
onbeat check --json onbeat.yaml`,
	"schedules apply": `
onbeat schedules apply schedules.yaml
onbeat schedules apply --dry-run schedules.yaml
echo '[{name: tick, every: 5s, task: echo}]' | onbeat schedules apply -`,
	"schedules pause": `
onbeat schedules pause nightly-report --reason migration
onbeat schedules pause --all --match 'billing.*' --dry-run`,
	"schedules resume": `
onbeat schedules resume nightly-report warm-cache`,
	"schedules trigger": `
onbeat schedules trigger nightly-report
onbeat schedules trigger nightly-report --payload '{"day": "2030-01-31"}'`,
	"schedules backfill": `
onbeat schedules backfill nightly-report --from 7d
onbeat schedules backfill nightly-report --from 7d --dry-run
onbeat schedules backfill nightly-report --from 7d --failed
onbeat schedules backfill nightly-report --from 2030-01-31 --again
onbeat schedules backfill nightly-report --from 2030-01-01T00:00:00Z --to 2030-01-31T00:00:00Z`,
	"schedules delete": `
onbeat schedules delete nightly-report`,
	"tasks": `
onbeat tasks list --state dead
onbeat tasks retry --all --type http`,
	"tasks list": `
onbeat tasks list
onbeat tasks list --state dead --type http --limit 1000
onbeat tasks list --schedule nightly-report --json | jq -r '.items[].id'`,
	"tasks show": `
onbeat tasks show invoice-42`,
	"tasks failures": `
onbeat tasks failures
onbeat tasks failures --type http --json | jq -r '.items[0].error'`,
	"tasks cancel": `
onbeat tasks cancel invoice-42 invoice-43
onbeat tasks cancel --all --queue mail --dry-run`,
	"tasks retry": `
onbeat tasks retry invoice-42
onbeat tasks retry --all --type http --dry-run
onbeat tasks retry --all --type http --error '*connection refused'
onbeat tasks retry --all --type http`,
	"tasks delete": `
onbeat tasks delete invoice-42
onbeat tasks delete --all --state done --schedule nightly-report`,
	"instances": `
onbeat instances
onbeat instances --wait ready=3 --release v42
onbeat instances promote v41
onbeat instances pause --for 1m`,
	"instances list": `
onbeat instances list --json
onbeat instances list --wait ready=3 --release v42 --timeout 10m`,
	"instances resign": `
onbeat instances resign 0198c0de-7b1f-7cc3-9a52-3f0d5f3f2a11`,
	"instances drain": `
onbeat instances drain 0198c0de-7b1f-7cc3-9a52-3f0d5f3f2a11 --wait`,
	"instances promote": `
onbeat instances promote v41`,
	"instances pause": `
onbeat instances pause --for 1m`,
	"instances resume": `
onbeat instances resume`,
	"events": `
onbeat events --since 1h
onbeat events -f --json`,
	"audit": `
onbeat audit
onbeat audit nightly-report --since 7d --tolerance 5s`,
	"lock": `
onbeat lock run nightly --nonblock -- /usr/local/bin/nightly`,
	"lock run": `
onbeat lock run nightly --nonblock --at-least 1m -- /usr/local/bin/nightly
onbeat lock run deploy --wait 5m --at-most 30m -- make deploy`,
	"preview": `
onbeat preview nightly-report
onbeat preview --cron '0 2 * * *' --timezone Asia/Seoul
onbeat preview --every 90s --from 2030-01-01T00:00:00Z --count 3`,
	"status": `
onbeat status
onbeat status -c onbeat.yaml --json
onbeat status --api https://onbeat.internal:8080`,
	"doctor": `
onbeat doctor
onbeat doctor -c onbeat.yaml --json
onbeat doctor -n shop --strict`,
	"conformance": `
onbeat conformance --redis redis://redis.staging:6379/0 --rollouts 10`,
	"completion": `
onbeat completion bash > /etc/bash_completion.d/onbeat
onbeat completion zsh > ~/.zfunc/_onbeat
onbeat completion fish > ~/.config/fish/completions/onbeat.fish`,
	"probe": `
onbeat probe
onbeat probe --ready
onbeat probe --api https://127.0.0.1:8443`,
	"init": `
onbeat init
onbeat init /etc/onbeat/onbeat.yaml`,
	"version": `
onbeat version
onbeat version --json`,
}

package main

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/onbeat/onbeat/admin"
)

// cli is the command line: one field a command, each in a file of its own.
type cli struct {
	globals

	Demo        demoCmd        `cmd:"" ignores:"archive,api,token-file,plain-http,config,redis,namespace" help:"Show a rollout that loses no beat. It needs no Redis and no config, and takes under 40 seconds."`
	Dev         devCmd         `cmd:"" ignores:"api,token-file,plain-http" refuses:"redis" help:"Run an instance with a Redis of its own, to try things out."`
	Init        initCmd        `cmd:"" ignores:"archive,api,token-file,plain-http,config,redis,namespace,json" help:"Write a first config file, with comments."`
	Serve       serveCmd       `cmd:"" ignores:"api,token-file,plain-http,json" help:"Run an instance: schedule, claim and run tasks until it gets a signal to stop."`
	Import      importCmd      `cmd:"" help:"Turn the jobs of another scheduler into schedules."`
	Enqueue     enqueueCmd     `cmd:"" help:"Add a task, or a file of them."`
	Schedules   schedulesCmd   `cmd:"" help:"List, change, pause, trigger, revert and restore schedules."`
	Tasks       tasksCmd       `cmd:"" help:"List, cancel, retry and delete tasks."`
	Instances   instancesCmd   `cmd:"" help:"List the instances or wait for them; promote a release; make an instance resign or drain."`
	Events      eventsCmd      `cmd:"" help:"Show events: instances that joined, led and left, and changes by people."`
	Status      statusCmd      `cmd:"" help:"Say whether all is well now, and what is wrong."`
	Audit       auditCmd       `cmd:"" help:"Say what became of each slot."`
	Lock        lockCmd        `cmd:"" ignores:"archive,api,token-file,plain-http,json" help:"Run a command under a lock, for example so that a crontab on many machines runs on only one."`
	Notify      notifyCmd      `cmd:"" ignores:"archive,api,token-file,plain-http,redis" help:"Send test messages to the targets of notifications."`
	Check       checkCmd       `cmd:"" ignores:"config" help:"Check a whole config file, and show the next slots. Needs no Redis."`
	Probe       probeCmd       `cmd:"" ignores:"archive,token-file,plain-http,config,redis,namespace,json" help:"Ask whether an instance is alive or ready: for the health check of a container."`
	Preview     previewCmd     `cmd:"" help:"Show the next slots of a rule (this needs no Redis) or of a schedule, and explain daylight saving."`
	Doctor      doctorCmd      `cmd:"" ignores:"api,token-file,plain-http" help:"Check whether Redis and the namespace are set up well."`
	Conformance conformanceCmd `cmd:"" ignores:"archive,api,token-file,plain-http" refuses:"namespace" help:"Try rollouts and faults against your own Redis, and judge every slot."`
	Completion  completionCmd  `cmd:"" ignores:"archive,api,token-file,plain-http,config,redis,namespace,json" help:"Print a completion script for bash, zsh or fish."`
	Version     versionCmd     `cmd:"" ignores:"archive,api,token-file,plain-http,config,redis,namespace" help:"Print the version."`
}

// globals are the flags of every command.
type globals struct {
	Config    string `short:"c" placeholder:"FILE" predict:"file" help:"Config file (YAML)."`
	Redis     string `placeholder:"URL" help:"Redis (or $$ONBEAT_REDIS_URL, or the config)."`
	Archive   string `placeholder:"URL" help:"SQL archive (or $$ONBEAT_ARCHIVE, or the config)."`
	Namespace string `short:"n" placeholder:"NAME" help:"Namespace (or $$ONBEAT_NAMESPACE, or the config)."`
	API       string `name:"api" placeholder:"URL" help:"API to use in place of Redis (or $$ONBEAT_API)."`
	TokenFile string `placeholder:"FILE" predict:"file" help:"File with the token for the API (or $$ONBEAT_TOKEN)."`
	PlainHTTP bool   `name:"plain-http" help:"Send the token over http://, readable on the way."`
	JSON      bool   `name:"json" help:"Print JSON."`
}

// exited is the panic with which --help ends the parser early.
type exited int

// run is the whole program without its process: the caller passes in the streams and the environment, and gets the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	out := &terminal{w: stdout}
	stdout, stderr = out, &terminal{w: stderr}
	asked := len(args) > 0
	if !asked { // the user gets the help without having asked for it
		stdout = stderr
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case exited: // the parser printed the help
			code = max(int(e), complain(stderr, out.orLost(nil)))
			if !asked {
				code = exitAsked
			}
		default:
			panic(e)
		}
	}()
	var c cli
	parser, err := newParser(&c, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "onbeat:", err)
		return exitFailed
	}
	if err := checkArgs(args); err != nil {
		return complain(stderr, err)
	}
	command, err := parser.Parse(usual(args))
	if err == nil {
		err = refuseIgnored(command)
	}
	if err != nil {
		return complain(stderr, parseError(err))
	}
	a := newApp(&c.globals, env, stdin, stdout, stderr)
	a.ctx = ctx
	a.parser = parser
	command.BindTo(admin.By(ctx, actor()), (*context.Context)(nil))
	err = command.Run(a)
	if admin.OfReplica(err) {
		if t, bad := a.target(); bad == nil && t.api == "" {
			err = hintOfReplica(err, t.url)
		}
	}
	return complain(stderr, out.orLost(err))
}

// checkArgs refuses arguments that the parser would change: it replaces bytes that are not UTF-8 by U+FFFD.
func checkArgs(args []string) error {
	for i, arg := range args {
		if !utf8.ValidString(arg) { // the error does not show it: it may be a password
			return &usageError{fmt.Sprintf("argument %d is not UTF-8", i+1), "write it in UTF-8"}
		}
	}
	return nil
}

func newParser(c *cli, stdout, stderr io.Writer) (*kong.Kong, error) {
	parser, err := kong.New(c,
		kong.Name("onbeat"),
		kong.Description("Keeps fixed-cadence jobs on the beat through every deploy."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.Vars{"previewName": previewName, "payloadHelp": payloadHelp},
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Print this help."
	return parser, nil
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

type schedulesApplyCmd struct {
	File   string `arg:"" predict:"file" help:"YAML file with schedules as in the config file, or only their list; - is stdin."`
	DryRun bool   `help:"Show the schedules and fields that apply would make or change, and of a config the schedules that a release with it retires. Write nothing."`
}

// Help is shown by onbeat schedules apply --help.
func (c *schedulesApplyCmd) Help() string {
	return "Makes the schedules of the file, or changes those of the same name. It removes none: see onbeat schedules delete. A " +
		"schedule that a release declares is changed until the next leader of that release declares it again."
}

// Run makes and changes schedules, after it has checked all of them.
func (c *schedulesApplyCmd) Run(ctx context.Context, a *app) error {
	file, err := c.read(ctx, a)
	if err != nil {
		return err
	}
	return a.takeSchedules(ctx, file, c.DryRun)
}

// takeSchedules makes and changes the schedules of a file, or shows what it would do.
func (a *app) takeSchedules(ctx context.Context, file *config.File, dry bool) error {
	t, err := a.targetFor(file)
	if err != nil {
		return err
	}
	list := file.Schedules
	if err := file.CheckSchedules(t.limits()); err != nil {
		return err
	}
	cl, err := a.connectTo(ctx, t)
	if err != nil {
		return err
	}
	defer cl.Close()
	if dry {
		err = a.planSchedules(ctx, cl, file)
	} else {
		err = a.applySchedules(ctx, cl, list)
	}
	if err == nil {
		kinds := make([]kind, len(list))
		for i := range list {
			kinds[i] = kind{list[i].Task, list[i].Queue}
		}
		a.sayUnhandled(ctx, cl, kinds)
	}
	return err
}

func (a *app) applySchedules(ctx context.Context, cl *client, list []producer.Schedule) error {
	by := map[string]producer.Schedule{}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
		by[names[i]] = list[i]
	}
	return a.each(names, func(name string) (string, error) {
		did, err := cl.Schedules.Apply(ctx, by[name])
		if err == nil && did.Declared {
			a.noteDeclared(name, did.DeclaredBy, "Change %s too.")
		}
		return did.Result, err
	})
}

// read reads a list of schedules, alone or within a config.
func (c *schedulesApplyCmd) read(ctx context.Context, a *app) (*config.File, error) {
	name, data, err := a.readSettings(ctx, c.File)
	if err != nil {
		return nil, err
	}
	return config.Parse(name, data, a.env)
}

// targetFor returns where to apply the schedules of a file. A file that names a namespace or a Redis is the config, unless a flag
// names another one, or an onbeat dev runs in this folder; then the namespaces must agree. With -c both must.
func (a *app) targetFor(file *config.File) (target, error) {
	from := file
	if a.API != "" { // a user who names an API by hand knows what it serves
		return a.targetOf(&config.File{})
	}
	if a.Config == "" && a.env("ONBEAT_API") == "" {
		dev, err := a.found()
		if err != nil {
			return target{}, err
		}
		if dev.Redis.URL != "" {
			from = dev
		}
	} else if a.Config != "" {
		cfg, err := a.loadConfig(a.Config)
		if err != nil {
			return target{}, err
		}
		if said := file.Redis.URL; said != "" && a.Redis == "" && said != cfg.Redis.URL {
			return target{}, file.At(refuse("redis.url", shownURL(said), "the config of -c says another, or none", "leave it out here, or decide with --redis"))
		}
		from = cfg
	}
	t, err := a.targetOf(from)
	if said := file.Dispatcher.Namespace; err == nil && t.api == "" && said != "" && a.Namespace == "" && t.cfg.Namespace != said {
		err = file.At(refuse("namespace", said, fmt.Sprintf("the schedules would go to namespace %q", t.cfg.Namespace), "decide with --namespace"))
	}
	return t, err
}

// kind is what decides which instance handles a task.
type kind struct{ typ, queue string }

// sayUnhandled notes on stderr which task types no instance handles.
func (a *app) sayUnhandled(ctx context.Context, cl *client, list []kind) {
	instances, err := cl.Instances.List(ctx)
	if err != nil { // a user who adds tasks may have no right to see the instances
		return
	}
	var said []string
	for i := range list {
		if why := unhandled(&instances, list[i].typ, list[i].queue); why != "" && !slices.Contains(said, why) {
			said = append(said, why)
			fmt.Fprintf(a.err, "onbeat: note: %s: its tasks wait until one does\n", why)
		}
	}
}

// unhandled says that no instance handles tasks of a type in a queue, and why. It is "" if one does.
func unhandled(list *admin.InstanceList, typ, queue string) string {
	queue = cmp.Or(queue, task.DefaultQueue)
	if list.Handles(queue, typ) {
		return ""
	}
	return list.Unhandled(queue, typ)
}

// Package config reads the config file of an instance.
//
// [Load] reads a file into a [File], whose parts are those that the other packages take: File.Dispatcher is an
// [onbeat.Config], File.Handlers a [handlers.BuiltinConfig], File.Schedules what [onbeat.Dispatcher.Declare] takes.
// [File.Check] then refuses what could not work, all of it at once, each with its line and its field. Neither talks to Redis.
//
//	f, err := config.Load("onbeat.yaml", os.Getenv)
//	if err == nil {
//		err = errors.Join(f.Unset(), f.Check())
//	}
//
// Reading is strict: an unknown field is refused with the name that was probably meant, and a number in quotes is no number.
// It is bounded too: a small file can stand for gigabytes, by aliases of aliases.
//
// In redis.url, archive.url, outbox.url and encryption.keys ${NAME} stands for an environment variable, which Load puts in. In the
// headers and the body of a payload of http it stays as it is until the task runs. A variable that is not set is a matter of the machine
// and not of the file: [File.Unset] and [File.Lacking] list those.
package config

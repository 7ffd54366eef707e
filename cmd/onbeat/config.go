package main

import (
	"github.com/onbeat/onbeat/queue"
)

// config is the config file.
type config struct {
	Redis        struct{ URL string }
	Namespace    string
	PayloadLimit int
	Keep         keepConfig
}

type keepConfig struct{ Dead, Done, History, Events int }

func (k keepConfig) caps() queue.Caps {
	return queue.Caps{Dead: k.Dead, Done: k.Done, History: k.History, Events: k.Events}
}

func (a *app) loadConfig(string) (*config, error) { return &config{}, nil }

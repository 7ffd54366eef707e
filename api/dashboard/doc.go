// Package dashboard has the pages for people: the beat, schedules, tasks, instances, events, audits. A page is a frame of html/template with
// templates of its parts; a module of JavaScript beside it fills them by the API, and follows the events live. There is no build
// step, and no request to another host.
//
// The pages ask the API for everything, under the session of the person who looks at them. So they may do what that person may do,
// and a page does not have what the role may not do. A [Dashboard] alone shows frames: it is the Dashboard of an api.Config, whose
// server tells it who asks.
package dashboard

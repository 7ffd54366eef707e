package archiver

import "context"

// Follow archives until ctx ends, as if an instance led.
func (a *Archiver) Follow(ctx context.Context, instance string) { a.follow(ctx, who{instance, "v1"}) }

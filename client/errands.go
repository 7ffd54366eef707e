package client

import (
	"context"

	"github.com/onbeat/onbeat/admin"
)

// errands are the errands of a namespace behind an API.
type errands struct{ c *conn }

func (e *errands) Begin(ctx context.Context, s admin.ErrandSpec) (out admin.Errand, err error) {
	err = e.c.post(ctx, "/errands", s, &out)
	return out, err
}

func (e *errands) List(ctx context.Context) (admin.List[admin.Errand], error) {
	return listOf[admin.Errand](ctx, e.c, "/errands", nil)
}

func (e *errands) Get(ctx context.Context, id string) (out admin.Errand, err error) {
	if id == "" {
		return out, missing("errand")
	}
	err = e.c.get(ctx, place("/errands/%s", id), nil, &out)
	return out, err
}

func (e *errands) Stop(ctx context.Context, id string) (admin.Errand, error) {
	return e.ask(ctx, id, "stop")
}

func (e *errands) Resume(ctx context.Context, id string) (admin.Errand, error) {
	return e.ask(ctx, id, "resume")
}

func (e *errands) ask(ctx context.Context, id, what string) (out admin.Errand, err error) {
	if id == "" {
		return out, missing("errand")
	}
	err = e.c.post(ctx, place("/errands/%s/"+what, id), nil, &out)
	return out, err
}

package client

import (
	"context"

	"github.com/onbeat/onbeat/admin"
)

// bulks are the bulk actions of a namespace behind an API.
type bulks struct{ c *conn }

func (b *bulks) Begin(ctx context.Context, s admin.BulkSpec) (out admin.BulkTask, err error) {
	err = b.c.post(ctx, "/bulk", s, &out)
	return out, err
}

func (b *bulks) List(ctx context.Context) (admin.List[admin.BulkTask], error) {
	return listOf[admin.BulkTask](ctx, b.c, "/bulk", nil)
}

func (b *bulks) Get(ctx context.Context, id string) (out admin.BulkTask, err error) {
	if id == "" {
		return out, missing("bulk action")
	}
	err = b.c.get(ctx, place("/bulk/%s", id), nil, &out)
	return out, err
}

func (b *bulks) Stop(ctx context.Context, id string) (admin.BulkTask, error) {
	return b.ask(ctx, id, "stop")
}

func (b *bulks) Resume(ctx context.Context, id string) (admin.BulkTask, error) {
	return b.ask(ctx, id, "resume")
}

func (b *bulks) ask(ctx context.Context, id, what string) (out admin.BulkTask, err error) {
	if id == "" {
		return out, missing("bulk action")
	}
	err = b.c.post(ctx, place("/bulk/%s/"+what, id), nil, &out)
	return out, err
}

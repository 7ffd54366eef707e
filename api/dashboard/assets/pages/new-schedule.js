import { params } from '../page.js';
import { get, place } from '../api.js';
import { may } from '../dom.js';
import { refused } from '../form.js';
import { Editor } from '../schedules/editor.js';
import { pathOf } from '../schedules/words.js';

if (may('admin')) {
  const editor = new Editor({ done: (name) => location.assign(pathOf(name)) });
  const like = params.get('like');
  editor.show({ name: params.get('name') });
  if (like) get(place`/schedules/${like}`).then((s) => editor.show({ ...s, name: '' }), (err) => refused(editor.form, err));
}

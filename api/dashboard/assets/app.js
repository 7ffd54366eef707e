// The entry. One file has all pages, and runs the one that is open.
const pages = {
  audit: () => import('./pages/audit.js'),
  beat: () => import('./pages/beat.js'),
  dead: () => import('./pages/dead.js'),
  enqueue: () => import('./pages/enqueue.js'),
  events: () => import('./pages/events.js'),
  instances: () => import('./pages/instances.js'),
  login: () => import('./pages/login.js'),
  'new-schedule': () => import('./pages/new-schedule.js'),
  overview: () => import('./pages/overview.js'),
  schedule: () => import('./pages/schedule.js'),
  schedules: () => import('./pages/schedules.js'),
  task: () => import('./pages/task.js'),
  tasks: () => import('./pages/tasks.js'),
  trends: () => import('./pages/trends.js'),
};

pages[document.documentElement.dataset.page]();

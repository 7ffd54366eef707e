import '../page.js';

/** The viewer: what a browser lets its page do, whose key it has, and what it says of what is old. */
import { weaken } from './mutant.mjs'

const HANDLER = 'test/viewer/handler.test.ts'
const KEY = 'test/viewer/key.test.ts'
const LIVE = 'test/viewer/live.test.ts'

export const VIEWER = [
  ...weaken('src/viewer/viewer.ts', HANDLER, [
    ['the viewer’s page stands under a policy', "'content-security-policy': policyOf(origin),", ''],
    ['the viewer’s page runs its own script alone', `"script-src 'self'",`, `"script-src 'self' 'unsafe-inline'",`],
    ['the viewer’s page is in nobody’s frame', `"frame-ancestors 'none'",`, ''],
    ['where the router is is refused by its own name', ".replace('prefix', 'api')", ''],
  ]),
  ...weaken('src/viewer/shell.ts', HANDLER, [
    ['a title is text', '<title>${escaped(title)}</title>', '<title>${title}</title>'],
  ]),
  ...weaken('src/viewer/page/key.ts', KEY, [
    ['a key leaves the address bar', "if (given !== undefined) history.replaceState(null, '', '#/')", ''],
    [
      'a key is what stands behind its name',
      'decodeURIComponent(text)',
      "decodeURIComponent(text.replaceAll('+', ' '))",
    ],
    [
      'a key is kept where that was asked for',
      '(remember ? sessionStorage.setItem(STORED, given) : sessionStorage.removeItem(STORED))',
      'sessionStorage.setItem(STORED, given)',
    ],
    [
      'a key that was refused is forgotten',
      'key = null\n  tried(() => sessionStorage.removeItem(STORED))',
      'key = null',
    ],
  ]),
  ...weaken('src/viewer/page/main.tsx', KEY, [
    ['a key of a link that is followed later leaves the address bar', 'if (!takeKey()) return', 'return'],
  ]),
  ...weaken('src/viewer/page/answers.ts', KEY, [
    [
      'a router that refuses is asked for nothing more',
      "if (reply.problem.status === 403 && reply.problem.code === 'forbidden' && entry.path === PULSE) return refuse()",
      '',
    ],
  ]),
  ...weaken('src/viewer/page/answers.ts', LIVE, [
    ['what nobody has confirmed is old', 'asOf !== null && Date.now() - asOf > LATE_MS', 'false'],
    ['a hidden tab asks nothing', 'isPaused || isRefused || document.hidden', 'isPaused || isRefused'],
    ['a quiet list is asked whether its source still answers', 'const QUIET_MS = 4_000', 'const QUIET_MS = 4_000_000'],
    ['a tag is of the answer that is shown', '  entry.etag = null\n  entry.dueAt', '  entry.dueAt'],
    [
      'a list that is refused takes no other one from the watch',
      "isList && !/^(4|501)/.test(`${problem?.status ?? ''}`)",
      'isList',
    ],
  ]),
  ...weaken('src/viewer/page/address.ts', LIVE, [
    ['an address that changes before anybody listens is followed', '    follow()\n', ''],
  ]),
  ...weaken('src/viewer/page/parts/text.tsx', 'test/viewer/hostile.test.ts', [
    ['what nobody sees is a mark', 'value.matchAll(UNSEEN)', 'value.matchAll(/(?!)/g)'],
  ]),
]

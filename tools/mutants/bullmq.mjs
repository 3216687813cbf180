/** What of a queue is read, how much of it, and what is said of it. */
import { weaken } from './mutant.mjs'

const [TRUTH, FAULTS, CONTRACT, WALK] = ['', '-faults', '-contract', '-walk'].map(
  (name) => `test/plugs/bullmq${name}.test.ts`,
)
const PAGES = 'test/diagnostics/findings-pages.test.ts'

export const BULLMQ = [
  ...weaken('src/bullmq/queue.ts', FAULTS, [
    ['a queue that never answers gathers so many questions', 'if (open >= OPEN_MAX)', 'if (false)'],
    ['a connection that is lost is not waited for', '!LINKED.includes(client.status)', 'false'],
    ['a queue that hangs is unavailable', '{ ms: timeoutMs, signal, late }', '{ ms: 1e6, signal, late }'],
  ]),
  ...weaken('src/bullmq/scripts.ts', FAULTS, [
    ['an old marker is no job', "string.sub(last, 1, 2) == '0:'", 'false'],
    ['a payload over the bound is not read', '<= payload_bytes then', '>= 0 then'],
    ['what is no hash is no job', 'if values.err then return {index, 0, 0, false, id} end', ''],
    ['the oldest job of a list is the last', 'for i = #ids, 1, -1 do', 'for i = 1, #ids do', CONTRACT],
    ['a job that stalled too often is known by its reason', "and '1' or '0' end", "and '0' or '0' end", TRUTH],
    ['a walk goes on behind the last job', "if last ~= '' then place", 'if false then place', WALK],
    ['a walk that is outrun ends', 'return left > 0 and 0 or length', 'return 0', WALK],
    ['a job that came back at the other end is no place', 'math.min(place + 1, ', 'math.min(100000, ', WALK],
    ['a job with another score is no place', 'last) == score then', 'last) then', WALK],
    ['a job in hand is in hand', "index = 'active' end", 'end', TRUTH],
  ]),
  ...weaken('src/bullmq/ids.ts', CONTRACT, [
    ['what no id may have is marked', 'text.replace(MARKED, (mark) => encodeURIComponent(mark))', 'text'],
  ]),
  ...weaken('src/bullmq/identity.ts', FAULTS, [
    [
      'who takes long to say whose a job is costs the job its owner alone',
      '        ms: IDENTIFY_MS,',
      '        ms: 60_000,',
    ],
    [
      'what is no identity is told',
      "throw new TypeError('identify: must answer an object with user_id and client_id, or null')",
      'return {}',
    ],
    ['what identify throws costs the job its owner alone', 'ask.onError?.(error)\n    return NOBODY', 'throw error'],
    ['what can be no id is none', '? checkId(given) :', '? undefined :'],
  ]),
  ...weaken('src/bullmq/jobs.ts', TRUTH, [
    ['an attempt that stalled timed out', "if (started === stalled) return 'timed_out'", ''],
    ['a job that is in hand has no outcome', "|| row.index === 'active'", ''],
    ['an end that was good is no refusal', "isRejected ? 'deliver_rejected' : 'other'", "'deliver_rejected'", WALK],
    ['the last end needs no further attempt', 'isTerminal(row) ? ended - 1 : ended', 'ended'],
    ['a reason that is gone is not known', "&& row.text('stalled') !== null", ''],
  ]),
  ...weaken('src/bullmq/commands.ts', CONTRACT, [
    ['a job is asked for by its own user and client', 'user_id === key.user_id && client_id === key.client_id', 'true'],
    ['a page ends in time', ' && (examined === 0 || isInTime())', '', WALK],
    ['a page looks at so many jobs', 'most - examined), ask)', 'CHUNK), ask)', FAULTS],
    [
      'jobs of nobody are not looked through for somebody',
      '(user_id !== undefined || client_id !== undefined)',
      'false',
    ],
    ['a filter is applied whole', 'if (!admitsCommand(filter, command)) continue', ''],
    ['what is left out is counted', 'omitted += 1\n', '\n', FAULTS],
  ]),
  ...weaken('src/bullmq/scopes.ts', TRUTH, [
    ['of a queue that is paused nothing is due', 'settings.paused === null ? jobs.wait', 'true ? jobs.wait'],
  ]),
  ...weaken('src/bullmq/nodes.ts', FAULTS, [
    ['as many connections are read as a request may', 'if (queue > begin && seen() >= most) return on(link)', ''],
    ['a store that tells of no connections leaves a gap', 'if (connected === null) omitted += 1', ''],
    [
      'one that cannot be reached is unavailable',
      'error instanceof Refusal || ask.signal.aborted',
      'ask.signal.aborted',
    ],
  ]),
  ...weaken('src/bullmq/store-connections.ts', FAULTS, [
    ['the connections of a store are read once', 'if (known) return known', ''],
  ]),
  ...weaken('src/views/findings/delivery.ts', FAULTS, [
    ['a command for no client waits for none', 'all.filter(isForClient)', 'all'],
    ['a living node is looked for behind silent ones', 'PAGE_MAX, isMeant)', 'PAGE_MAX)', PAGES],
    [
      'a client has a command in hand behind an empty page',
      'pageWith(SOURCE, { entry: DeliveryCommand, list }, PAGE_MAX)\n  if',
      'page(SOURCE, { entry: DeliveryCommand, list }, { cursor: null, limit: PAGE_MAX })\n  if',
      PAGES,
    ],
    [
      'a scope has a command behind an empty page',
      'pageWith(SOURCE, { entry: DeliveryCommand, list }, PAGE_MAX)\n    //',
      'page(SOURCE, { entry: DeliveryCommand, list }, { cursor: null, limit: PAGE_MAX })\n    //',
      PAGES,
    ],
    [
      'a silent node has a connection behind an empty page',
      "pageWith('registry', { entry: Connection, list }, 1)",
      "page('registry', { entry: Connection, list }, { cursor: null, limit: 1 })",
      PAGES,
    ],
    [
      'a finding of a command has the id that its status is asked for',
      'evidence, addressOf(command))',
      'evidence)',
      PAGES,
    ],
    [
      'a finding of a command of nobody names its scope',
      '  ...((user_id === null || client_id === null) && { scope_id: admission.scope_id }),\n',
      '',
      PAGES,
    ],
  ]),
]

/** Defects of deliveries, calls, shares, sessions, reservations and leases: one changed line each. Each must fail one of its test files. */

const STEPS = ['test/redis/delivery-steps.test.ts']
const MEMORY = ['test/memory/delivery.test.ts']
const SHARES = ['test/contract/shares.test.ts']
const SESSIONS = ['test/cooperative-site/registries.test.ts']
const lua = (name) => `src/redis/delivery/${name}.lua`
const memory = (name) => `src/memory/${name}.ts`
const gate = (name) => `src/cooperative-site/actions/${name}.ts`

export const PLANTED = [
  ['a paused command of a dead node is recovered', lua('pass'), STEPS, "'[ahp]'", "'[ah]'"],
  [
    'an attach after the detach of the same order is late',
    lua('clients'),
    STEPS,
    'own_order <= detached',
    'own_order < detached',
  ],
  [
    'an attempt that is given back frees its slot',
    lua('clients'),
    STEPS,
    '  free_place(c)\n  c.attempts = text(c.attempts - 1)',
    '  c.attempts = text(c.attempts - 1)',
  ],
  [
    'a failed attempt frees its slot',
    lua('clients'),
    STEPS,
    "  free_place(c)\n  if outcome == 'handed_over' then",
    "  if outcome == 'handed_over' then",
  ],
  [
    'a failed dispatch frees its reservation in another shard',
    'src/redis/delivery/dispatch.ts',
    ['test/redis/delivery-shared.test.ts'],
    'if (!isPlaceUsed) await release()',
    'if (!isPlaceUsed) return admitted',
  ],
  [
    'a heap keeps its order after a removal',
    'src/internal/fair-share/fair-share.ts',
    SHARES,
    '    if (at < this.#members.length) this.#sift(at)\n',
    '',
  ],
  [
    'a slot of a call is released once',
    gate('shares'),
    ['test/cooperative-site/shares.test.ts'],
    '        if (!isTaken) return\n',
    '',
  ],
  [
    'the key of a call that was not sent is free again',
    gate('gate'),
    ['test/cooperative-site/gate-idempotency.test.ts'],
    '      else await claim?.release()\n',
    '',
  ],
  [
    'a call that ends frees its slot',
    gate('gate'),
    ['test/cooperative-site/gate.test.ts'],
    '      } finally {\n        release()\n      }',
    '      } finally {\n        void release\n      }',
  ],
  ['a refusal replaces an acknowledgement', memory('delivery/facility'), MEMORY, " || state === 'refused') {", ') {'],
  [
    'an acknowledgement of a former instance is fenced',
    memory('delivery/facility'),
    MEMORY,
    "      if (!(await isCurrent(input, input.instance_id, options))) return refuse('fenced')\n",
    '',
  ],
  [
    'the end of a command frees its reservation',
    memory('delivery/commands'),
    MEMORY,
    '      reservations.release(command.scope_id, command)\n',
    '',
  ],
  [
    'a reservation past its deadline is free',
    memory('delivery/facility'),
    ['test/memory/delivery-bounds.test.ts', ...MEMORY],
    '      attempts.expireDue()\n',
    '',
  ],
  [
    'dispatches of one command share its reservation',
    lua('clients'),
    STEPS,
    "    if find(before, ' [^ ]') then\n",
    '    if false then\n',
  ],
  [
    'a closed session cannot be shared',
    'src/internal/rules/sessions.ts',
    SESSIONS,
    "state === 'closed' || state === 'expired'",
    "state === 'expired'",
  ],
  [
    'an expired session cannot be shared',
    'src/internal/rules/sessions.ts',
    SESSIONS,
    "state === 'closed' || state === 'expired'",
    "state === 'closed'",
  ],
  [
    'a session moves only from the states that allow it',
    'src/internal/rules/sessions.ts',
    SESSIONS,
    '!SESSION_MOVES[state].includes(session.state)',
    '!SESSION_MOVES[state]',
  ],
  [
    'a new row gets a lease',
    'src/redis/store/tables.lua',
    ['test/redis/browser-windows.test.ts'],
    "write('SET', key, text)",
    "redis.call('SET', key, text)",
  ],
  ['leases are renewed', 'src/redis/store/store.ts', ['test/redis/leases.test.ts'], '      renewLeases(shard)\n', ''],
].map(([name, file, tests, find, replace]) => ({ name: `planted: ${name}`, file, find, replace, tests }))

/**
 * The steps of the delivery protocol. This one table gives calls their types, the Lua functions of the same names their arguments
 * in this order, and docs/delivery-design.md its rows. Each function says what its arguments mean.
 */

interface Definition {
  /** How a batch names the step. */
  readonly letter: string
  /** `.lua` file of the function. */
  readonly file: string
  readonly args: readonly string[]
  /** What it does, and what it answers. */
  readonly does: string
}

export const STEPS = {
  admit: {
    letter: 'A',
    file: 'admission',
    args: [
      'mailbox',
      'id',
      'action',
      'trace',
      'scope',
      'scope_shard',
      'deadline',
      'ttl',
      'capacity',
      'writes_capacity',
      'max_attempts',
      'fingerprint',
      'required',
      'current',
      'refused',
      'call_id',
      'payload',
    ],
    does: 'refuses a command (`rejected`), answers what is known of it (`known`, `conflict`), or writes its record. A waiter with a free slot gets it as attempt 1: in the reply if it is at the calling node (`given`), else by a message (`admitted`)',
  },
  report: {
    letter: 'S',
    file: 'clients',
    args: ['ref', 'kind', 'reason', 'instance', 'was_asked', 'current', 'handed', 'acknowledges', 'call_id'],
    does: 'acknowledges or ends a command, fenced by instance. Frees the slot and gives the next command of the queue',
  },
  conclude: {
    letter: 'C',
    file: 'clients',
    args: ['ref', 'delivery', 'outcome', 'ago'],
    does: 'records the outcome of an attempt, fenced by its number; answers `pause` if another attempt follows',
  },
  retry: { letter: 'G', file: 'clients', args: ['ref', 'delivery'], does: 'begins the next attempt, after the pause' },
  give_back: {
    letter: 'B',
    file: 'clients',
    args: ['ref', 'delivery'],
    does: 'returns an attempt that has not begun; it does not count',
  },
  fetch: {
    letter: 'D',
    file: 'clients',
    args: ['ref', 'delivery'],
    does: 'reads an attempt whose message was lost with a reply',
  },
  look_up: { letter: 'K', file: 'clients', args: ['ref'], does: 'reads a record' },
  take_order: { letter: 'O', file: 'clients', args: [], does: 'takes the order of an attach' },
  attach: {
    letter: 'W',
    file: 'clients',
    args: ['mailbox', 'instance', 'order', 'max_deliveries'],
    does: 'attaches a client; answers which attempts it has (`attached`), or who is attached instead (`late`)',
  },
  detach: {
    letter: 'X',
    file: 'clients',
    args: ['mailbox', 'order'],
    does: 'detaches a client; answers which attempts it had',
  },
  reserve: {
    letter: 'V',
    file: 'clients',
    args: ['scope', 'ref', 'ttl', 'capacity', 'writes_capacity', 'dispatch'],
    does: 'reserves a place in a scope for a command of another shard; answers its deadline, or nothing if the scope is full',
  },
  release: { letter: 'L', file: 'clients', args: ['scope', 'ref', 'dispatch'], does: 'releases such a place' },
  pass: {
    letter: 'R',
    file: 'pass',
    args: ['heard', 'suspects', 'scope_after', 'former'],
    does: 'at least once a second: the lease, messages, deadlines, dead nodes, retention',
  },
} as const satisfies Record<string, Definition>

export type Step = keyof typeof STEPS
export type Given<S extends Step> = Readonly<Record<(typeof STEPS)[S]['args'][number], string | number>>

/** Fills in the functions of a run, by letter, and how many arguments each takes. */
export const withSteps = (lua: string): string =>
  lua.replace(
    '{{STEPS}}',
    Object.entries(STEPS)
      .map(([name, { letter, args }]) => `${letter} = { ${name}, ${args.length} }`)
      .join(', '),
  )

/** Returns a step as a batch has it: its letter, and each argument with a zero byte after it. */
export function encodeStep<S extends Step>(step: S, given: Given<S>): string {
  const { letter, args }: Definition = STEPS[step]
  let text: string = letter
  for (const name of args) text += `${(given as Record<string, string | number>)[name]}\0`
  return text
}

/** What a history is made of, drawn from its seed. */
import type { ClientKind } from './links.js'
import { createDice } from './random.js'

export type Fault =
  | 'link breaks'
  | 'reply is lost'
  | 'link stalls'
  | 'replies stall'
  | 'node dies'
  | 'node stands still'
  | 'node clock steps'
  | 'subscriber breaks'
  | 'subscriber goes deaf'
  | 'store pauses'
  | 'store clock steps'
  | 'store restarts'
  | 'store loses writes'
  | 'store is full'

const PROFILES = {
  calm: [],
  links: ['link breaks', 'reply is lost', 'link stalls', 'replies stall', 'subscriber breaks', 'subscriber goes deaf'],
  nodes: ['node dies', 'node stands still', 'node clock steps', 'link breaks'],
  all: [
    'link breaks',
    'reply is lost',
    'link stalls',
    'replies stall',
    'node dies',
    'node stands still',
    'subscriber breaks',
    'subscriber goes deaf',
    'node clock steps',
    'store pauses',
  ],
  store: ['store clock steps', 'store restarts', 'store pauses', 'link breaks', 'node dies'],
  loss: ['store loses writes', 'node dies', 'link breaks'],
  full: ['store is full', 'link breaks', 'node dies'],
} satisfies Record<string, Fault[]>

export type Profile = keyof typeof PROFILES

/** The compositions and stores that a history can run on. */
export type StoreKind = 'memory' | 'redis' | 'redis-sharded'

const WEIGHTED: Profile[] = ['calm', 'links', 'links', 'nodes', 'nodes', 'all', 'all', 'all', 'store', 'loss', 'full']

export interface Config {
  seed: number
  store: StoreKind
  profile: Profile
  faults: readonly Fault[]
  faultEveryMs: number
  nodes: number
  shards: number
  /** The client of each node, and the observer's last. */
  clientKinds: ClientKind[]
  users: number
  clientsPerUser: number
  /** Virtual seconds in which things go wrong. */
  seconds: number
  capacity: number
  ackTimeoutMs: number
  maxAttempts: number
  dedupTtlMs: number
  heartbeatTimeoutMs: number
  slowTailMs: number
  callsPerViewer: number
  /** Whether the store runs functions. */
  hasFunctions: boolean
  /** Whether the run continues until everything must have expired. */
  forgets: boolean
}

export function configOf(seed: number, store: StoreKind, over: Partial<Config> = {}): Config {
  const dice = createDice(seed, 'config')
  const profile = over.profile ?? dice.pick(WEIGHTED)
  return {
    seed,
    store,
    profile,
    faults: store === 'memory' ? [] : PROFILES[profile],
    nodes: store === 'memory' ? 1 : 1 + dice.int(3),
    shards: store === 'redis-sharded' ? 4 : 1,
    clientKinds: Array.from({ length: 4 }, () => dice.pick<ClientKind>(['node-redis', 'ioredis'])),
    users: 1 + dice.int(3),
    clientsPerUser: 1 + dice.int(2),
    seconds: 7 + dice.int(12),
    capacity: 2 + dice.int(6),
    ackTimeoutMs: dice.pick([700, 1_500, 4_000]),
    maxAttempts: 1 + dice.int(4),
    faultEveryMs: dice.pick([400, 1_200, 3_000]),
    dedupTtlMs: 20_000,
    heartbeatTimeoutMs: 15_000,
    slowTailMs: dice.pick([30, 200, 700]),
    callsPerViewer: 2,
    hasFunctions: createDice(seed, 'functions').chance(0.75),
    forgets: store !== 'memory' && seed % 3 === 0,
    ...over,
  }
}

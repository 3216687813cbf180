/** Refuses clients, and options of clients, with which commands of this library would mean something else. */
type Options = Readonly<Record<string, unknown> & { redisOptions?: object }>

/** Objects of the two packages that look like a client, by a method that only they have. The last two cannot be duplicated. */
const OTHERS = [
  ['getSentinelNode', 'a Sentinel of node-redis (createSentinel)'],
  ['execute', 'a pool of node-redis (createClientPool)'],
  ['exec', 'a pipeline or transaction'],
  ['sendCommand', 'a client of node-redis in legacy mode (legacy())'],
] as const

/**
 * Options with which a client would read or write other data than its peers, by the package that has them. Cluster
 * clients have them in `redisOptions` or `defaults`, too.
 */
const REFUSED: readonly (readonly [
  packageName: 'ioredis' | 'node-redis',
  option: string,
  isSet: (value: unknown) => boolean,
  reason: string,
])[] = [
  // node-redis does not add its `keyPrefix` to commands that are sent as they are.
  ['ioredis', 'keyPrefix', Boolean, 'channels do not get the prefix, and `deploymentId` already separates keys'],
  ['ioredis', 'readOnly', (value) => value === true, 'a replica is late, and refuses writes'],
  ['ioredis', 'role', (value) => value === 'slave', 'a replica is late, and refuses writes'],
  ['ioredis', 'monitor', (value) => value === true, 'such a connection runs no commands'],
  ['node-redis', 'readonly', (value) => value === true, 'a replica is late, and refuses writes'],
  ['node-redis', 'legacyMode', (value) => value === true, 'its commands return no promises'],
]

/** Returns the options that the client was created with. */
export function optionsOf(client: object): Options {
  const { options, _options } = client as { options?: Options; _options?: Options }
  return options ?? _options ?? {}
}

/** The options of the client itself and those of its nodes, if it is a Cluster. */
function allOptionsOf(client: object): Options[] {
  const own = optionsOf(client)
  return [own, own.redisOptions, own.defaults].filter((one): one is Options => typeof one === 'object' && one !== null)
}

/** Returns what `client` is, if the library does not support it although it looks like a client. */
export function unsupportedKind(client: unknown): string | undefined {
  const shape = client as Partial<Record<string, unknown>> | undefined
  const others = typeof shape?.duplicate === 'function' ? OTHERS.slice(0, 2) : OTHERS
  return others.find(([method]) => typeof shape?.[method] === 'function')?.[1]
}

/** @throws TypeError that names an option of `client` with which the library does not work. */
export function checkClientOptions(client: object, kind: string): void {
  const all = allOptionsOf(client)
  for (const [packageName, option, isSet, reason] of REFUSED)
    if (kind.startsWith(packageName) && all.some((options) => isSet(options[option])))
      throw new TypeError(
        `Unsupported option "${option}" of the ${packageName} client: ${reason}. Pass a client without it.`,
      )
}

/** Whether the client returns integers as strings. */
export const hasStringNumbers = (client: object): boolean =>
  allOptionsOf(client).some(({ stringNumbers }) => stringNumbers === true)

/** Whether the client sends commands in pipelines of its own. */
export const hasAutoPipelining = (client: object): boolean =>
  allOptionsOf(client).some(({ enableAutoPipelining }) => enableAutoPipelining === true)

/** Returns the number of the database that the client has selected when it connects. */
export function databaseOf(client: object): number {
  const { db, database } = optionsOf(client)
  return Number(db ?? database ?? 0) || 0
}

/** `relayscope remove`: deletes all keys of one deployment. Nothing else in this package sends `SCAN`. */
import { parse, readDeployment, readUrl, UsageError } from './arguments.js'
import { connectStore } from './observation.js'
import { print } from './text/table.js'

const REMOVE_HELP = `relayscope remove: deletes everything that one deployment has in its Redis

  npx -p relayscope -p redis relayscope remove --redis redis://127.0.0.1:6379 --deployment prod

  --redis URL      the store, single or Cluster; also from RELAYSCOPE_REDIS_URL
  --deployment ID  the deployment to remove. Stop its nodes first: they write again
  --yes            do not ask

It shows the number of keys of each family, and asks for the id. It also deletes the function library if no other
deployment is in the same database. Payloads in a spill store stay. Its user needs SCAN, UNLINK and FUNCTION.

Exit codes: 0 removed, or nothing to remove; 1 not confirmed, or the store cannot be used; 2 wrong usage.
`

const OPTIONS = {
  redis: { type: 'string' },
  deployment: { type: 'string' },
  yes: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const

/** Number of keys that one `SCAN` looks at. */
const BATCH = 1_000
/** Libraries of this package, whatever their build. */
const LIBRARY = /^relayscope_[0-9a-f]{12}$/

interface Node {
  sendCommand(args: string[]): Promise<unknown>
}
interface Cluster {
  readonly masters: object[]
  nodeClient(master: object): Promise<Node>
}

/** The parts of the process that `remove` uses. */
export interface RemoveIo {
  env: Record<string, string | undefined>
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  /** Asks a question, and returns the answer. `null` if the input is not a terminal. */
  ask: ((question: string) => Promise<string>) | null
}

/** Every master of a Cluster, or the single server. */
const mastersOf = async (client: Node | Cluster): Promise<Node[]> =>
  'masters' in client ? Promise.all(client.masters.map((master) => client.nodeClient(master))) : [client]

/** Calls `onKeys` with the keys of this package on `node`, some at a time. A key may come twice. */
async function scan(node: Node, onKeys: (keys: string[]) => Promise<void> | void): Promise<void> {
  let cursor = '0'
  do {
    const args = ['SCAN', cursor, 'MATCH', 'relayscope:{*', 'COUNT', String(BATCH)]
    const [next, keys] = (await node.sendCommand(args)) as [string, string[]]
    await onKeys(keys)
    cursor = String(next)
  } while (cursor !== '0')
}

async function removeLibraries(node: Node): Promise<void> {
  const list = (await node.sendCommand(['FUNCTION', 'LIST', 'LIBRARYNAME', 'relayscope_*'])) as unknown[]
  for (const library of list)
    for (const name of Object.values(library as object))
      if (typeof name === 'string' && LIBRARY.test(name)) await node.sendCommand(['FUNCTION', 'DELETE', name])
}

/** @returns the exit code. @throws UsageError; an Error if the store cannot be used. */
export async function remove(args: readonly string[], { env, stdout, stderr, ask }: RemoveIo): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(stdout, REMOVE_HELP.trimEnd())
    return 0
  }
  if (positionals.length > 0) throw new UsageError('remove takes options only')
  const deployment = readDeployment(values.deployment)
  const url = readUrl(values.redis ?? env.RELAYSCOPE_REDIS_URL)
  if (!values.yes && ask === null) throw new UsageError('--yes is required if the input is not a terminal')
  const { client, close } = await connectStore(url)
  try {
    const masters = await mastersOf(client as unknown as Node | Cluster)
    const own = new RegExp(`^relayscope:\\{${deployment}:\\d+(?:@\\d+)?\\}:([^:]*)`)
    const families = new Map<string, number>()
    let hasOthers = false
    for (const node of masters)
      await scan(node, (keys) => {
        for (const key of keys) {
          const family = own.exec(key)?.[1]
          if (family === undefined) hasOthers = true
          else families.set(family, (families.get(family) ?? 0) + 1)
        }
      })
    if (families.size === 0) {
      print(stdout, `nothing of deployment "${deployment}" is in this store`)
      return 0
    }
    for (const [family, keys] of [...families].sort()) print(stdout, `${family.padEnd(20)} ${keys} keys`)
    if (!values.yes && (await ask?.(`Delete all of deployment "${deployment}"? Type its id: `)) !== deployment) {
      print(stderr, 'relayscope: nothing was deleted')
      return 1
    }
    let deleted = 0
    for (const node of masters)
      await scan(node, async (keys) => {
        // One by one: the keys of two shards are in two slots.
        const found = keys.filter((key) => own.test(key)).map((key) => node.sendCommand(['UNLINK', key]))
        for (const count of await Promise.all(found)) deleted += Number(count)
      })
    if (!hasOthers) await Promise.all(masters.map(removeLibraries))
    print(stdout, `deleted ${deleted} keys${hasOthers ? '' : ' and the function library'}`)
    return 0
  } finally {
    close()
  }
}

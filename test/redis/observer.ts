/** The permissions that the docs publish for an observer, as a real server is given them. */

import { readFile } from 'node:fs/promises'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { ALIKE, type Connected, ready, type Server } from './server.js'

const PASSWORD = 'change-me'
const USER = 'observer'

/** The arguments of the `ACL SETUSER` in docs/redis-keys.md, for another deployment. */
export async function publishedAcl(deploymentId: string): Promise<string[]> {
  const docs = await readFile(new URL('../../docs/redis-keys.md', import.meta.url), 'utf8')
  const [, block] = /```text\n(ACL SETUSER observer[^`]*)```/.exec(docs) ?? []
  if (!block) throw new Error('docs/redis-keys.md publishes no ACL')
  return block.replaceAll('{prod:', `{${deploymentId}:`).trim().split(/\s+/)
}

/** Makes the observer known to `servers` and connects as it with the client of `kind`. */
export async function connectObserver(
  kind: string,
  servers: readonly Server[],
  deploymentId: string,
): Promise<Connected> {
  const acl = await publishedAcl(deploymentId)
  await Promise.all(servers.map((server) => server.cli(...acl)))
  const url = ({ port }: Server) => `redis://${USER}:${PASSWORD}@127.0.0.1:${port}`
  const first = servers[0] as Server
  const auth = { username: USER, password: PASSWORD }
  if (kind === 'node-redis' || kind === 'node-redis cluster') {
    const client =
      kind === 'node-redis'
        ? createClient({ ...ALIKE, url: url(first) })
        : createCluster({ ...ALIKE, rootNodes: servers.map((server) => ({ url: url(server) })), defaults: auth })
    client.on('error', () => {})
    await client.connect()
    return { client: client, close: async () => client.destroy() }
  }
  const client =
    kind === 'ioredis'
      ? new Redis({ host: '127.0.0.1', port: first.port, ...auth })
      : new Cluster(
          servers.map(({ port }) => ({ host: '127.0.0.1', port })),
          { redisOptions: auth },
        )
  await ready(client)
  return { client: client, close: async () => client.disconnect() }
}

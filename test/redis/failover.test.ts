/** What an admission that was acknowledged survives: kills of a store with and without a log, and failovers to a replica. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { wasNotRun } from '../../src/internal/refusal.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { ASK } from '../contract/clock.js'
import { clients, describeRedis, formed, ready, type Server, startCluster, startServer } from './server.js'
import { startSilentLink } from './silent-link.js'
import { soon } from './wait-for.js'

const KEY = { user_id: 'ada', client_id: 'console', command_id: 'c-1' }
const COMMAND = { ...KEY, action: 'work', deadline_ms: 600_000 }

async function serve(options: Parameters<typeof startServer>[0] = {}): Promise<Server> {
  const server = await startServer(options)
  onTestFinished(() => server.stop())
  return server
}

function connect(server: Server): Redis {
  const client = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 50 }).on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

function dispatcherOver(client: RedisClient) {
  const dispatcher = createRedisCommandDispatcher({ client, deploymentId: 'failover', onError: null })
  onTestFinished(async () => void (await dispatcher.close()))
  return dispatcher
}

/** Whether `server` has the command as admitted, read by a node that has just started. */
async function isKept(server: Server): Promise<boolean> {
  const status = await dispatcherOver(connect(server)).inspector.status(KEY, ASK)
  return status?.admission?.state === 'admitted'
}

/** A master with a replica that is behind a link which can be cut. */
async function startPair(args: string[] = []) {
  const master = await serve({ args: ['--repl-diskless-sync-delay', '0', ...args] })
  const link = await startSilentLink(master.port)
  onTestFinished(() => link.close())
  const replica = await serve({ args: ['--replicaof', `127.0.0.1 ${link.port}`] })
  await soon(async () => expect(await replica.cli('INFO', 'replication')).toContain('master_link_status:up'))
  await soon(async () => expect(await master.cli('INFO', 'replication')).toMatch(/state=online/))
  const client = connect(master)
  await ready(client)
  return {
    master,
    replica,
    link,
    client,
    async failOver() {
      await master.kill()
      await replica.cli('REPLICAOF', 'NO', 'ONE')
    },
  }
}

describeRedis('an admission that was acknowledged', () => {
  it.each<[string, string[], boolean]>([
    ['is lost when a store without a log is killed', ['--appendonly', 'no'], false],
    ['survives kill -9 of a store with appendfsync always', ['--appendonly', 'yes', '--appendfsync', 'always'], true],
    [
      'survives kill -9 of a store with appendfsync everysec once its buffer is written',
      ['--appendonly', 'yes', '--appendfsync', 'everysec'],
      true,
    ],
  ])('%s', async (_what, log, survives) => {
    const directory = mkdtempSync(join(tmpdir(), 'relayscope-failover-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const args = ['--dir', directory, ...log]
    const server = await serve({ args })
    const client = connect(server)
    const { admission } = await dispatcherOver(client).dispatch(COMMAND)
    if (log.includes('everysec'))
      await soon(async () => expect(await server.cli('INFO', 'persistence')).toMatch(/aof_buffer_length:0\b/))
    await server.kill()
    const again = await serve({ port: server.port, args })
    await soon(async () => expect(await again.cli('INFO', 'persistence')).toMatch(/^loading:0/m))
    expect(await isKept(again)).toBe(survives)
    // Repeating the admission is safe either way: lost, it is admitted again; kept, it is the same command.
    const repeated = await dispatcherOver(connect(again)).dispatch(COMMAND)
    expect(repeated.admission.state).toBe('admitted')
    expect(repeated.admission.at === admission.at).toBe(survives)
  })

  it('is lost in a failover to a replica that had not received it, which WAIT has told', async () => {
    const { replica, link, client, failOver } = await startPair()
    link.silence()
    await dispatcherOver(client).dispatch(COMMAND)
    expect(await client.wait(1, 100)).toBe(0)
    await failOver()
    expect(await isKept(replica)).toBe(false)
  })

  it('survives a failover if WAIT on the same connection has counted the replica', async () => {
    const { replica, client, failOver } = await startPair()
    await dispatcherOver(client).dispatch(COMMAND)
    expect(await client.wait(1, 60_000)).toBe(1)
    await failOver()
    expect(await isKept(replica)).toBe(true)
    const reached = new Promise((resolve) => {
      void dispatcherOver(connect(replica)).attach({ ...KEY, instance_id: 'i' }, async ({ command_id }) =>
        resolve(command_id),
      )
    })
    expect(await reached).toBe(KEY.command_id)
  })

  it('is refused with min-replicas-to-write as long as no replica is in reach', async () => {
    const { master, link, client } = await startPair(['--min-replicas-to-write', '1', '--min-replicas-max-lag', '2'])
    link.silence()
    await soon(async () => expect(await master.cli('INFO', 'replication')).toMatch(/min_slaves_good_slaves:0/))
    const refused = await dispatcherOver(client)
      .dispatch(COMMAND)
      .catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'unavailable' })
    expect(wasNotRun(refused)).toBe(true)
    await master.cli('CONFIG', 'SET', 'min-replicas-to-write', '0')
    expect(await isKept(master)).toBe(false)
  })

  it('survives the failover of a Cluster if the replica had received it, and the Cluster admits again', async () => {
    const { servers, stop } = await startCluster(3)
    onTestFinished(stop)
    const [slot, ...ids] = await Promise.all([
      servers[0]?.cli('CLUSTER', 'KEYSLOT', '{failover:0}'),
      ...servers.map((server) => server.cli('CLUSTER', 'MYID')),
    ])
    const owner = Math.floor(Number(slot) / Math.ceil(16_384 / 3))
    const master = servers[owner] as Server
    const replica = await serve({ args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'] })
    await replica.cli('CLUSTER', 'MEET', '127.0.0.1', String(master.port))
    await formed([...servers, replica])
    await soon(async () => expect(await replica.cli('CLUSTER', 'REPLICATE', ids[owner] as string)).toBe('OK'))
    const { client, close } = await clients['ioredis cluster'](servers.map(({ port }) => port))
    onTestFinished(close)
    const dispatcher = dispatcherOver(client)
    await soon(() => dispatcher.dispatch(COMMAND))
    await soon(async () => {
      const [, offset] = /slave_repl_offset:(\d+)/.exec(await replica.cli('INFO', 'replication')) ?? []
      const [, wanted] = /master_repl_offset:(\d+)/.exec(await master.cli('INFO', 'replication')) ?? []
      expect(Number(offset)).toBeGreaterThan(0)
      expect(Number(offset)).toBeGreaterThanOrEqual(Number(wanted))
    })
    await master.kill()
    const other = { ...COMMAND, command_id: 'c-2' }
    const [admitted, before] = await soon(() =>
      Promise.all([dispatcher.dispatch(other), dispatcher.inspector.status(KEY, ASK)]),
    )
    expect(admitted).toBeDefined()
    expect(before?.admission?.state).toBe('admitted')
    expect(await replica.cli('ROLE')).toMatch(/^master/)
  })
})

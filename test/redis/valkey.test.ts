/** The contract of a dispatcher, over Valkey. `VALKEY_SERVER` names its server. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { deliveryContract } from '../contract/delivery.js'
import { type Connected, clients, type Server, startServer } from './server.js'

const VALKEY = process.env.VALKEY_SERVER ?? 'valkey-server'
const isMissing = spawnSync(VALKEY, ['--version'], { stdio: 'ignore' }).error !== undefined

const NAME = 'the dispatcher in Valkey'

function overValkey() {
  let server: Server
  let connected: Connected
  let deployments = 0
  beforeAll(async () => {
    server = await startServer({ binary: VALKEY })
    connected = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await connected?.close()
    await server?.stop()
  })

  it('runs on Valkey', async () => expect(await server.cli('INFO', 'server')).toContain('server_name:valkey'))

  deliveryContract((settings) => {
    const deploymentId = `d${++deployments}`
    return createRedisCommandDispatcher({ client: connected.client, deploymentId, onError: null, ...settings })
  })
}

// Not a skipped suite for each of its tests, where there is no such server.
if (isMissing) it.skip(`${NAME} (does not apply: valkey-server is not installed)`)
else describe(NAME, overValkey)

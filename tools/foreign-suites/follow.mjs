/** Follows each server that a suite creates, of the module in `FOLLOWED`. Preloaded by tools/foreign-suites.mjs. */
import { createRequire } from 'node:module'
import { createMemoryFacilities } from 'relayscope/memory'
import { followSocketIo } from 'relayscope/socket.io'
import { followWebSockets, jsonRpc } from 'relayscope/ws'

const require = createRequire(process.env.FOLLOWED)
const given = require(process.env.FOLLOWED)
let sockets = 0

class Followed extends (given.Server ?? given) {
  constructor(...args) {
    super(...args)
    const { connections, rpc: calls } = createMemoryFacilities()
    const identify = () => ({ user_id: 'ada', client_id: `c-${++sockets}`, instance_id: 'run-1', client_type: 'web' })
    const onError = (error) => process.stderr.write(`follower: ${error.stack}\n`)
    const options = { connections, calls, aliveOnMessage: true, identify, onError }
    if (given.Server) followSocketIo(this, options)
    else followWebSockets(this, { ...options, protocol: jsonRpc })
  }
}

const replaced = given.Server && Object.assign((...args) => new Followed(...args), given, { Server: Followed })
require.cache[process.env.FOLLOWED].exports = replaced ?? Followed
process.on('exit', () => process.stderr.write(`followed: ${sockets}\n`))

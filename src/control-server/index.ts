/** The face of `relayscope/control-server`. */
export { controlServerOpenApi } from './openapi.js'
export {
  type ControlServerTimeouts,
  type CooperativeSiteControlServer,
  type CooperativeSiteControlServerOptions,
  startCooperativeSiteControlServer,
} from './server.js'

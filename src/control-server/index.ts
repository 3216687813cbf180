/** The face of `relayscope/control-server`. */
export { controlServerOpenApi } from './routes.js'
export {
  type ControlServerTimeouts,
  type CooperativeSiteControlServer,
  type CooperativeSiteControlServerOptions,
  startCooperativeSiteControlServer,
} from './server.js'

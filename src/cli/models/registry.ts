import type { EndpointView, KeyView, ModelView, VendorView } from '../../state/registry/catalog.ts'
import type { RouteView } from '../../state/registry/routing.ts'
import { UsageError } from '../failure.ts'
import type { Desk } from './desk.ts'

export const vendorPath = (id: string): string => `/admin/v1/vendors/${encodeURIComponent(id)}`

export type Listed = {
  vendor: VendorView
  keys: KeyView[]
  endpoints: EndpointView[]
  models: ModelView[]
}

/** All vendors with what is theirs. */
export const readVendors = async (desk: Desk): Promise<Listed[]> => {
  const vendors = await desk.all<VendorView>('/admin/v1/vendors')
  return Promise.all(
    vendors.map(async (vendor) => {
      const [keys, endpoints, models] = await Promise.all([
        desk.all<KeyView>(`${vendorPath(vendor.id)}/keys`),
        desk.all<EndpointView>(`${vendorPath(vendor.id)}/endpoints`),
        desk.all<ModelView>(`${vendorPath(vendor.id)}/models`),
      ])
      return { vendor, keys, endpoints, models }
    }),
  )
}

export const readRoutes = (desk: Desk): Promise<RouteView[]> => desk.all<RouteView>('/admin/v1/routes')

export const findModel = async (desk: Desk, alias: string): Promise<ModelView> => {
  const models = (await readVendors(desk)).flatMap((listed) => listed.models)
  const model = models.find(({ name }) => name === alias)
  if (model) return model
  const names = models.map(({ name }) => name)
  throw new UsageError(
    `there is no model ${JSON.stringify(alias)}`,
    names.length > 0 ? `there are: ${names.slice(0, 20).join(', ')}` : 'add one with mason models add',
  )
}

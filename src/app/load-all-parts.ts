import { listPartFiles } from '../features/load-features.ts'
import type { LoadedParts } from '../graph/load.ts'
import { loadOwnParts } from '../project/load-project.ts'
import { featureSources } from './features.generated.ts'

/** The nodes and tools of the core and of the features, with those of these folders of a product; see `loadParts`. */
export const loadAllParts = (
  folders: readonly string[] = [],
  others: readonly string[] = [],
): Promise<LoadedParts> => loadOwnParts(folders, others, listPartFiles(featureSources))

"""The fixed windows that fill up the regions of a photograph after the boxes of a detector."""

import numpy as np

from itr_study.data.box_table import grid_boxes

# After the boxes: the cells of a 3 x 3 and of a 4 x 4 grid, the whole, its quarters and halves, the
# middle across and down. A picture with few boxes has all of them.
FINE = np.concatenate([grid_boxes(3), grid_boxes(4)])
COARSE = np.concatenate([
    [[0, 0, 1, 1]], grid_boxes(2), [[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0, 0, 1, 0.5], [0, 0.5, 1, 1],
                                    [0, 0.25, 1, 0.75], [0.25, 0, 0.75, 1]]])
WINDOWS = np.concatenate([FINE, COARSE])
FEWEST, MOST = len(FINE) + 1, len(WINDOWS)  # regions: the fine windows and a box; all windows

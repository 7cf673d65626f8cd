# SPDX-License-Identifier: Apache-2.0
"""Operations of the stand-in for ttnn."""
